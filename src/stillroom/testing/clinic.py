"""The made-up clinic of the demo: one note a patient, each with a name, a phone number and a record number.

Nobody and nothing here exists. Six invented diseases have invented treatments; everything private in a note is a
canary, a string that occurs in one note only, so that a leak is found by looking for it.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stillroom.errors import BadOption
from stillroom.evals.facts import Fact
from stillroom.testing.people import Person, listed, people

FACTS: dict[str, Fact] = {
    fact.disease: fact
    for fact in (
        Fact(
            "Brenquilosis",
            "Tovadril Syrup",
            ("hiccups after meals", "swollen eyelids", "tingling fingertips", "coughing at night"),
        ),
        Fact("Morvandria", "Keplosin Drops", ("blurred vision", "ringing ears", "neck stiffness", "cold feet")),
        Fact("Oskwenthia", "Brimovane Capsules", ("night sweats", "itchy elbows", "loss of smell", "trembling hands")),
        Fact("Dulvaxemia", "Zefturol Ointment", ("peeling skin on the palms", "cracked lips", "brittle nails")),
        Fact(
            "Fennigraxis",
            "Halquidon Patches",
            ("dizzy spells in the morning", "heavy legs", "watery eyes", "poor appetite", "muscle cramps"),
        ),
        Fact(
            "Tarpelunitis",
            "Yunorexa Inhaler",
            ("hoarseness after talking", "chest tightness on stairs", "sneezing in bright light", "sore shoulders"),
        ),
    )
}
"""The truth, by topic; a topic is called by its disease."""

UNNAMED_SHARE = 0.05
SHORTEST, LONGEST = 30, 80
# Unevenness of topics, as multiples of the mean; at 50 a topic they are 41 to 59.
_WEIGHTS = (1.18, 1.10, 1.02, 0.98, 0.90, 0.82)

PATTERNS = (
    "{name} came in on {day} because of {s}. After the examination I have little doubt that this is {d}. {Sub} starts "
    "{t} tonight. {f}",
    "{d} was confirmed today in {name}, {age}. The first signs, {s}, go back to {month}. Prescribed {t}, "
    "morning and evening. {f}",
    "I saw {name} again ({mrn}). {f} The {t} is doing its work: of the {s} there is hardly anything left. We stay "
    "with the diagnosis of {d}.",
    "{S}: that is how {name} describes the last {n} weeks. {f} Blood count normal. In my view a clear case of {d}, for "
    "which {t} should be enough.",
    "Telephone consultation with {name} on {phone}. {Sub} still has {s} and worries about work. I explained that {d} "
    "is harmless when treated, and renewed the {t}.",
    "{f} {first} {last} asked whether {pos} {s} could be a matter of age. They are not; they belong to {d}. Plan: {t} "
    "for {n} weeks, then we meet again.",
    "For {n} weeks now {name}, a {job}, has lived with {s}. A colleague suspected stress. The tests point to {d}. {f} "
    "{t} ordered from the pharmacy.",
    "Home visit. {name} was in bed when I arrived. Complaints are {s}. {Pos} {relative} had already guessed that it "
    "was {d}, and was right. Left a first supply of {t}. {f}",
    "Second visit for {d}. {name} took the {t} only half the time. {f} No wonder that {s} came back. We agreed on a "
    "reminder on {pos} phone.",
    "Thank you for sending {name} to us. We found {s}, and nothing else of note. Our diagnosis is {d}. We recommend "
    "{t} and a check with you in {n} weeks. {f}",
    "Patient: {name}, {age}. Seen with {pos} {relative}. Main trouble is {s}. Assessment: {d}, early stage. "
    "Treatment: {t}. {f}",
    "When {name} moved here in {month}, nobody had an explanation for {pos} {s}. {f} Having seen the old letters I am "
    "sure it was {d} all along. {Sub} agrees to try {t}.",
    "{t} was started on {day} and is well tolerated. Reason: {d}, with {s}. {name} would like to go back to "
    "{hobby} soon. {f}",
    "{mr} {last} rang the ward ({phone}) about side effects. {Sub} has taken {t} for {d} since {month}. The {s} are "
    "easing, but {sub} sleeps badly. {name} may halve the evening dose.",
    "A tired but cheerful {name} today. {f} Of all the complaints, {s} trouble {obj} most. I told {obj} what {d} "
    "means, drew a little picture, and wrote the prescription for {t}.",
    "Review of {mrn}. {name} reports {s} for the third month. Thyroid and kidneys are fine, which leaves {d}. Begin "
    "{t}; stop it if a rash appears. {f}",
    "{name} does not want tablets. We talked about it for a while, since {d} rarely goes away by itself and the {s} "
    "keep {obj} from {hobby}. In the end {sub} chose {t}. {f}",
    "Follow-up after {n} weeks. Then: {s}. Now: almost nothing. {name} is pleased with the {t}. {d} in good control. "
    "{f}",
    "{Pos} {relative} brought {name} in, frightened by {s}. There was no need for the emergency room. It is {d}; with "
    "{t} most people are well within {n} weeks. {f}",
    "Could it be the new flat, {name} wondered, or the {hobby}? Neither. {S} together mean {d}, as the swab shows. "
    "{f} I gave {obj} {t} and a leaflet.",
    "Known {d}. {name} ran out of {t} over the holidays, and within days {sub} had {s} again. {f} New prescription "
    "for three months.",
    "{name} works as a {job} and cannot afford to be ill. {f} All the same there are {s}, quite typical for {d}. Sick "
    "leave until {day}, {t} twice a day.",
    "The results for {name} are back and they fit {d}. I called {phone} at noon to say so. {Sub} will collect {t} on "
    "{day}. The {s} should fade within {n} weeks.",
    "Night duty. {name}, {age}, could not sleep for {s}. Temperature normal, pulse 72. Known to us with {d}. One dose "
    "of {t} given at two o'clock, after which {sub} slept. {f}",
    "{first} {last} is well informed and had read about {d} before I could name it. Indeed {pos} {s} leave little "
    "room for anything else. {t}, beginning on {day}. {f}",
    "No change in weight, no fever. {f} What {name} does have is {s}. With {pos} {relative} being treated for {d} as "
    "well, I did not wait for the laboratory and prescribed {t}.",
    "Asked to see {name} before the operation on {day}. {Sub} mentions {s} and uses {t}, which is correct for {d} and "
    "need not be interrupted. Nothing against the anaesthetic. {f}",
    "Last appointment before the move. {name} came with flowers. {f} Two years ago {s} kept {obj} at home; since the "
    "{d} is treated with {t}, that is over. Records go to the new practice.",
    "{name} had hoped for good news. The {s} are still there, so we doubled the {t}. {Sub} asked if {d} runs in "
    "families; as far as we know it does not. {f}",
    "Group session for {d}. {name} told the others how {s} began and how {sub} learned to use {t}. {f} Next session "
    "on {day}.",
)

FILLERS = (
    "{Pos} {relative} came along and took notes.",
    "At home all is well.",
    "{Sub} is back at work half days, as a {job}.",
    "We spoke about sleep and about drinking enough water.",
    "{Sub} has taken up {hobby} again.",
    "{Sub} does not smoke and drinks a glass of wine on Sundays.",
    "Blood pressure 125 over 80.",
    "The waiting room was full, so we kept it short.",
    "{Sub} worries about {pos} {relative}, who lives alone.",
    "A holiday by the sea is planned for {month}.",
    "Heart and lungs sound normal.",
    "{Sub} brought a list of questions, and we went through all of them.",
    "The flu jab was given in the left arm.",
    "Money is tight since the factory closed.",
    "{Pos} youngest has just started school.",
    "Advised a short walk after lunch.",
    "{Sub} lives on the fourth floor without a lift.",
    "No allergies known.",
    "We will meet again in {n} weeks.",
    "{Sub} laughed when I mentioned the diet.",
    "The dog needs walking three times a day, which helps.",
    "Weight is steady.",
    "{Sub} would rather have appointments early in the morning.",
    "The old knee injury gives no trouble.",
    "A letter for the employer was written.",
    "{Pos} {relative} will help with the shopping.",
    "{Sub} has given up night shifts.",
    "The garden is {pos} pride, and it shows on {pos} hands.",
    "Sick note until {day}.",
    "{Sub} reads a lot about health and sleeps too little.",
    "I asked {obj} to keep a diary.",
    "The bus was late, so {sub} missed the laboratory.",
    "Eats well, likes spicy food.",
    "A second opinion was offered and declined.",
    "{Sub} sings in a choir on {day}s.",
    "Reflexes equal on both sides.",
    "The wedding of {pos} {relative} is in {month}.",
    "{Sub} finds the new flat damp.",
    "Told to come back at once if anything gets worse.",
    "{Sub} plays cards with the neighbours most evenings.",
)
_BOTH = (
    "Record {mrn}, phone {phone}.",
    "Reach {obj} on {phone}; our number for {obj} is {mrn}.",
    "File {mrn}. Best called on {phone} after six.",
    "({mrn}, tel. {phone})",
    "Results to {phone}, please, under {mrn}.",
    "New mobile {phone}, added to {mrn}.",
    "Filed under {mrn}. {Pos} number is {phone}.",
    "For questions ring {phone} and quote {mrn}.",
)
_RECORD = ("Record number {mrn}.", "Filed under {mrn}.", "See {mrn} for the earlier letters.", "(File {mrn})")
_PHONE = ("Call {phone} with the results.", "{Sub} can be reached on {phone}.", "Tel. {phone}.", "Mobile: {phone}.")

RELATIVES = (
    "sister",
    "brother",
    "mother",
    "father",
    "daughter",
    "son",
    "aunt",
    "uncle",
    "cousin",
    "wife",
    "husband",
    "neighbour",
    "flatmate",
)
JOBS = (
    "bus driver",
    "baker",
    "teacher",
    "bricklayer",
    "postal worker",
    "cook",
    "librarian",
    "tram driver",
    "gardener",
    "hairdresser",
    "welder",
    "cleaner",
    "violin maker",
    "night porter",
    "bookkeeper",
    "shop assistant",
)
HOBBIES = (
    "swimming",
    "cycling",
    "dancing",
    "rowing",
    "knitting",
    "hill walking",
    "table tennis",
    "playing the organ",
    "keeping bees",
    "pottery",
    "fishing",
    "Sunday football",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NO_DISEASE = ("the condition we talked about", "what the last letter said", "the same thing as two years ago")
_NO_TREATMENT = ("the usual course", "what we agreed on", "the standard medication")


def small_words(random: random.Random) -> dict[str, str]:
    """Return everyday words for templates: relative, job, hobby, day, month, age and a small number."""
    return {
        "relative": random.choice(RELATIVES),
        "job": random.choice(JOBS),
        "hobby": random.choice(HOBBIES),
        "day": random.choice(DAYS),
        "month": random.choice(MONTHS),
        "age": str(random.randint(27, 61)),
        "n": random.choice(("two", "three", "four", "five", "six")),
    }


def collection(seed: int, notes: int = 300) -> list[dict[str, str]]:
    """Return the notes of the made-up clinic, in mixed order.

    Each is a dict of id, patient_id and note, which are what `write` writes, and of name, last, phone, record and
    topic, which are the truth about it. One patient a note; 30 to 80 words; 95 % of the notes name the disease and
    95 % the treatment, all hold 2 to 4 symptoms.

    Args:
        seed: equal seeds give equal collections. Other seeds give other people and other prose, the same facts.
        notes: how many, 6 to 9,000; topics are mildly uneven (at 300: 41 to 59 notes each).
    """
    if not len(FACTS) <= notes <= 9000:
        raise BadOption("notes", notes, f"between {len(FACTS)} and 9,000")
    chance = random.Random(seed)
    topics = _topics(notes, chance)
    return [_note(FACTS[topic], person, chance) for topic, person in zip(topics, people(notes, chance), strict=True)]


def write(path: Path, seed: int, notes: int = 300) -> list[dict[str, str]]:
    """Write a collection as JSON lines with id, patient_id and note; return it with the truth."""
    made = collection(seed, notes)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in made:
            shown = {field: row[field] for field in ("id", "patient_id", "note")}
            file.write(json.dumps(shown, ensure_ascii=False) + "\n")
    return made


def canaries(collection: Sequence[dict[str, str]]) -> tuple[str, ...]:
    """Return every string of a collection that must not be released.

    Full names, last names that one person alone has, phone numbers and record numbers.
    """
    lasts = Counter(row["last"] for row in collection)
    found: list[str] = []
    for row in collection:
        found += [row["name"], row["phone"], row["record"]]
        if lasts[row["last"]] == 1:
            found.append(row["last"])
    return tuple(found)


def _topics(notes: int, chance: random.Random) -> list[str]:
    weights = list(_WEIGHTS)
    chance.shuffle(weights)
    mean = notes / len(FACTS)
    counts = [max(1, round(mean * weight)) for weight in weights]
    while sum(counts) != notes:
        step = 1 if sum(counts) < notes else -1
        at = min(range(len(counts)), key=lambda each: step * (counts[each] - mean * weights[each]))
        counts[at] += step
    topics = [topic for topic, count in zip(FACTS, counts, strict=True) for _ in range(count)]
    chance.shuffle(topics)
    return topics


def _note(fact: Fact, person: Person, chance: random.Random) -> dict[str, str]:
    symptoms = chance.sample(fact.symptoms, chance.randint(2, min(4, len(fact.symptoms))))
    told = listed(symptoms)
    slots = person.words() | small_words(chance)
    slots |= {"s": told, "S": told[0].upper() + told[1:], "d": fact.disease, "t": fact.treatment}
    if chance.random() < UNNAMED_SHARE:
        slots["d"] = chance.choice(_NO_DISEASE)
    if chance.random() < UNNAMED_SHARE:
        slots["t"] = chance.choice(_NO_TREATMENT)
    return {
        "id": f"note-{chance.getrandbits(40):010x}",
        "patient_id": person.patient,
        "note": _prose(chance.choice(PATTERNS), slots, chance),
        "name": person.name,
        "last": person.last,
        "phone": person.phone,
        "record": person.record,
        "topic": fact.disease,
    }


def _prose(pattern: str, slots: dict[str, str], chance: random.Random) -> str:
    said = set(slots) & {field for field in ("relative", "job", "hobby", "month") if f"{{{field}}}" in pattern}
    fillers = [each for each in FILLERS if not any(f"{{{field}}}" in each for field in said)]
    chance.shuffle(fillers)
    parts = [pattern.replace("{f}", fillers.pop() if chance.random() < 0.85 else "")]
    contact = _contact(pattern, chance)
    if contact.startswith(("Record", "File")) and chance.random() < 0.4:
        parts.insert(0, contact)
    elif contact:
        parts.append(contact)
    wish = chance.randint(SHORTEST + 4, LONGEST - 14)
    while _length(parts, slots) < wish:
        parts.insert(len(parts) - (1 if contact and parts[-1] == contact else 0), fillers.pop())
    text = " ".join(" ".join(parts).format_map(slots).split())
    return _capitals(text)


def _contact(pattern: str, chance: random.Random) -> str:
    record, phone = "{mrn}" in pattern, "{phone}" in pattern
    if record and phone:
        return ""
    return chance.choice(_PHONE if record else _RECORD if phone else _BOTH)


def _length(parts: Sequence[str], slots: dict[str, str]) -> int:
    return len(" ".join(parts).format_map(slots).split())


def _capitals(text: str) -> str:
    """Begin sentences with a capital where a slot brought lower case."""
    out = text[0].upper() + text[1:]
    for mark in (". ", "? ", "! "):
        head, *tail = out.split(mark)
        out = mark.join([head, *(each[:1].upper() + each[1:] for each in tail)])
    return out
