import { randomOf } from './random.ts';

/** A name as it is written, and as it stands in an address. */
type Spelling = readonly [written: string, ascii: string];
type Names = readonly [Spelling, ...Spelling[]];

interface NameSet {
  /** Percentage. */
  readonly share: number;
  readonly given: Names;
  readonly family: Names;
  readonly familyFirst?: boolean;
  readonly between?: string;
}

const latin: NameSet = {
  share: 58,
  given: [
    ['Ada', 'ada'],
    ['Zoë', 'zoe'],
    ['Søren', 'soren'],
    ['Łucja', 'lucja'],
    ['Željko', 'zeljko'],
    ['İpek', 'ipek'],
    ['Ngọc', 'ngoc'],
    ['José', 'jose'],
    ['Þóra', 'thora'],
    ['Grace', 'grace'],
    ['Chidi', 'chidi'],
    ['Jürgen', 'juergen'],
  ],
  family: [
    ["O'Connor", 'oconnor'],
    ['Nováková', 'novakova'],
    ['Ångström', 'angstrom'],
    ['Müller-Weiß', 'mueller-weiss'],
    ['Peña', 'pena'],
    ['Kowalczyk', 'kowalczyk'],
    ['Șerban', 'serban'],
    ['Nguyễn', 'nguyen'],
    ['Lindqvist', 'lindqvist'],
    ['Öztürk', 'ozturk'],
    ['Okonkwo', 'okonkwo'],
    ['Gonçalves', 'goncalves'],
  ],
};

const greek: NameSet = {
  share: 8,
  given: [
    ['Ελένη', 'eleni'],
    ['Γιώργος', 'giorgos'],
    ['Νίκος', 'nikos'],
    ['Σοφία', 'sofia'],
  ],
  family: [
    ['Παπαδόπουλος', 'papadopoulos'],
    ['Αλεξίου', 'alexiou'],
    ['Βασιλείου', 'vasileiou'],
  ],
};

const cyrillic: NameSet = {
  share: 11,
  given: [
    ['Ольга', 'olha'],
    ['Сергій', 'serhii'],
    ['Йордан', 'yordan'],
    ['Любовь', 'lyubov'],
  ],
  family: [
    ['Шевченко', 'shevchenko'],
    ['Іванчук', 'ivanchuk'],
    ['Ёлкина', 'yolkina'],
    ['Ђорђевић', 'djordjevic'],
  ],
};

const han: NameSet = {
  share: 12,
  given: [
    ['小明', 'xiaoming'],
    ['美玲', 'meiling'],
    ['花子', 'hanako'],
    ['志強', 'zhiqiang'],
  ],
  family: [
    ['王', 'wang'],
    ['歐陽', 'ouyang'],
    ['山田', 'yamada'],
    ['陈', 'chen'],
  ],
  familyFirst: true,
  between: '',
};

const hangul: NameSet = {
  share: 3,
  given: [
    ['민준', 'minjun'],
    ['서연', 'seoyeon'],
  ],
  family: [
    ['김', 'kim'],
    ['박', 'park'],
  ],
  familyFirst: true,
  between: '',
};

const arabic: NameSet = {
  share: 8,
  given: [
    ['فاطمة', 'fatima'],
    ['يوسف', 'yusuf'],
    ['ليلى', 'layla'],
  ],
  family: [
    ['الحسيني', 'alhusseini'],
    ['بن سعيد', 'bensaid'],
    ['المصري', 'almasri'],
  ],
};

const everySpelling = [latin, greek, cyrillic, han, hangul, arabic];
const emoji = ['🌱', '👩‍🚀', '🇪🇺'] as const;
const emojiEvery = 500;
const designations = [
  null,
  'Engineer',
  'Ingénieure',
  'Buchhalter:in',
  'Проектный менеджер',
  '研究員',
  'Head of Operations',
] as const;

function namesAt(percent: number): NameSet {
  let below = 0;
  for (const users of everySpelling) {
    below += users.share;
    if (percent < below) return users;
  }
  return latin;
}

/** Returns a fictional user, the same for the same seed and number; the number makes the address unique. */
export function userOf({ seed, number, domain }: { seed: number; number: number; domain: string }) {
  const random = randomOf(seed, number);
  const { given, family, familyFirst = false, between = ' ' } = namesAt(random.upTo(100));
  const [givenName, givenAscii] = random.pick(given);
  const [familyName, familyAscii] = random.pick(family);
  const name = (familyFirst ? [familyName, givenName] : [givenName, familyName]).join(between);
  const mark = random.upTo(emojiEvery) === 0 ? ` ${random.pick(emoji)}` : '';
  const hasMobile = random.upTo(4) === 0;
  return {
    fullName: (name + mark).normalize('NFC'),
    email: `${givenAscii}.${familyAscii}.${number}@${domain}`,
    designation: random.pick(designations),
    mobile: hasMobile ? `+44${String(7_000_000_000 + random.upTo(1_000_000_000))}` : null,
  };
}
