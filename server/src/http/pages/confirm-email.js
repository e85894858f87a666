{
  const part = document.getElementById('secret');
  const password = document.getElementById('password');
  const intro = document.getElementById('intro');
  const send = document.getElementById('send');
  const [introText, sendText] = [intro.textContent, send.textContent];
  /** The link went to the earlier address, whose owner allows another one. Rule: ADDRESS-16. */
  let isApproval = false;

  openLinkPage({
    url: 'api/v1/userAccount/email/confirm/token',
    missing: 'To confirm an address',
    opened(step) {
      isApproval = step === 'approve';
      intro.textContent = isApproval
        ? 'Press the button to allow the new e-mail address of your account. If you did not change it, close this page: nothing happens.'
        : introText;
      send.textContent = isApproval ? 'Allow the change' : sendText;
      return isApproval ? 'Allow another e-mail address' : undefined;
    },
    gone: 'It was used already, was replaced by a newer one, has expired, or your address or password has changed since.',
    reset() {
      part.hidden = true;
    },
    problem: () => (!part.hidden && password.value === '' ? ['Please type your password.', password] : null),
    body: () => (part.hidden ? {} : { currentPassword: password.value }),
    onResponse(status, error, page) {
      if (status === 200 && isApproval) {
        const text =
          'We are sending a mail to the new address: open the link in it. If none arrives within ten minutes, ask for the change again.';
        page.finish('The change is allowed', text);
      } else if (status === 200) {
        const text = 'Mail about your account goes to this address from now on. You can close this page.';
        page.finish('Your address is confirmed', text);
      } else if (status === 400) {
        part.hidden = false;
        page.complain(['Please type the password of your account: the address was entered without it.'], password);
      } else if (status === 401 && error?.code === 'UNAUTHORIZED' && !part.hidden) {
        page.complain(['This is not the password of your account.'], password);
      } else return false;
      return true;
    },
  });
}
