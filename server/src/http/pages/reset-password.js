{
  const [password, repeated] = ['password', 'repeated'].map((id) => document.getElementById(id));
  const shown = document.getElementById('show');
  const showPasswords = (is) => {
    for (const field of [password, repeated]) field.type = is ? 'text' : 'password';
  };
  shown.addEventListener('change', () => showPasswords(shown.checked));

  openLinkPage({
    url: 'api/v1/userAccount/password/reset/token',
    missing: 'To choose a password',
    gone: 'It was used already, was replaced by a newer one, or has expired. If you have just set a password, sign in with it. Otherwise ask for a new link.',
    reset: () => showPasswords(false),
    problem() {
      if (password.value === '') return ['Please type a new password.', password];
      if (password.value !== repeated.value) return ['The two passwords are not the same.', repeated];
      return null;
    },
    body: () => ({ password: password.value }),
    onResponse(status, error, page) {
      if (status === 200) {
        page.finish('Your password is set', 'You can sign in now with your new password. You can close this page.');
      } else if (status === 400) {
        const texts = (error?.details ?? []).map((detail) => `The password ${detail.message}.`);
        page.complain(texts.length > 0 ? texts : ['This password cannot be used. Please choose another.'], password);
      } else return false;
      return true;
    },
  });
}
