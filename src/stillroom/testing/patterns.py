"""Notes for measurements: five invented topics told in more than forty truly different ways.

The clinic of the demo shows the method; this generator measures it. Its patterns differ in structure, register, order
and person, so that what a release keeps is what notes agree on and not the wording of one template. `TUNING` holds
topics for finding presets, which are never reported on.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from stillroom.errors import BadOption
from stillroom.evals.facts import Fact
from stillroom.testing.clinic import small_words
from stillroom.testing.people import Person, listed, people

FACTS: dict[str, Fact] = {
    fact.disease: fact
    for fact in (
        Fact(
            "Quorvenitis",
            "Lumadrex Tablets",
            ("numb toes", "scalp itching", "sudden thirst", "shaky knees", "metallic taste"),
        ),
        Fact(
            "Haldrimosis",
            "Pentovar Spray",
            ("burning soles", "frequent nosebleeds", "restless sleep", "yellow fingernails"),
        ),
        Fact(
            "Zandeluxia",
            "Corvitane Lozenges",
            ("stinging eyelids", "hollow coughing", "clumsy fingers", "jaw pain", "chills after bathing"),
        ),
        Fact(
            "Ulmexathosis",
            "Fistoram Injections",
            ("swollen ankles", "pounding headaches", "purple spots on the arms", "fainting in warm rooms"),
        ),
        Fact(
            "Wexmoridia",
            "Jalbuton Plasters",
            ("stomach rumbling at dawn", "slurred speech", "ear pressure", "wrist weakness", "hair loss"),
        ),
    )
}
"""The topics that are reported on."""

TUNING: dict[str, Fact] = {
    fact.disease: fact
    for fact in (
        Fact(
            "Trevondosis",
            "Ambelvin Powder",
            ("creaking hips", "foggy thinking", "bleeding gums", "excessive yawning"),
        ),
        Fact(
            "Kirshulemia",
            "Novaquil Wafers",
            ("blistered heels", "racing heartbeat", "sour belching", "dim night vision", "twitching cheeks"),
        ),
        Fact("Edralaxia", "Sibmorel Gel", ("tender ribs", "flaking eyebrows", "thumb swelling", "shallow breathing")),
        Fact(
            "Ganteporia",
            "Ruxolime Rinse",
            ("throat tickling", "grey tongue coating", "hot flushes", "calf cramps", "weak grip"),
        ),
        Fact("Lythavoria", "Dorvaxil Pills", ("back spasms", "nausea in cars", "red earlobes", "word finding trouble")),
        Fact(
            "Nimbrafosis",
            "Etolvane Baths",
            ("sensitive teeth", "leg restlessness", "skin mottling", "sudden weeping", "stiff fingers"),
        ),
    )
}
"""Other topics, for finding presets; nothing measured on them is reported."""

# Slots: see Person.words and small_words; d disease, t treatment; s "a, b and c", S the same capitalised, or_ the same
# with "or", lines one symptom a line, semi "a; b; c", plus "a + b + c"; one the first symptom, rest, others the others.
PATTERNS: dict[str, str] = {
    "soap": "S: {name}, {age}, complains of {s}, worse since {month}. Lives with {pos} {relative}, works as a "
    "{job}.\nO: Alert, afebrile, pulse 76 regular. Chest clear, abdomen soft, no neurological deficit.\nA: "
    "Findings consistent with {d}. No complication at present.\nP: {t}, first dose today. Recheck in {n} weeks; "
    "earlier if vomiting or fever occurs.",
    "referral": "Dear colleague, may I ask you to see {name}, a {age}-year-old {job} whom I have looked after "
    "since childhood? Over the past {n} months {sub} has developed {s}. I believe we are dealing with {d}, and "
    "would value your advice whether {t} can be given alongside {pos} thyroid tablets. With kind regards.",
    "reply": "Many thanks for this interesting patient. On examination {mr} {last} looked well. The history of "
    "{s} is striking, and biopsy settled the question in favour of {d}. I have taken the liberty of starting "
    "{t}. {f} You may wish to repeat liver values before {month}; otherwise no routine review with us is "
    "necessary.",
    "dictation": "Dictation for the file of {last}, first name {first}, full stop. New paragraph. Presents with "
    "{s}, full stop. Correction, the onset was {month}, not earlier. Impression colon {d}. Please send the "
    "standard leaflet, and type a prescription for {t}, quantity for {n} weeks. Copy to family doctor. End of "
    "dictation, thank you.",
    "nurse log": "06:40 {first} awake, says the night was poor. 07:15 obs stable, ate half a roll. 09:00 ward "
    "round: {d} explained again, family present. 11:30 {t} given, no reaction. 14:00 mentions {s}; doctor told. "
    "18:20 {relative} visiting, mood better. 21:45 settled, call bell within reach.",
    "first person": "I never go to the doctor, ask my {relative}. But when {s} all turned up in the same "
    "fortnight I gave in. They took blood, looked at each other and told me I have {d}. Never heard of it. Now "
    "there is a box of {t} beside my bed, and honestly, I feel more like myself. I have even gone back to "
    "{hobby}. – {first}",
    "bullets": "Patient {name}\n- Age {age}, {job}\n- Takes: {t}\n- Because of: {d}\n- Complaints:\n{lines}\n- "
    "Allergies: penicillin\n- Smoking: stopped years ago\n- Support: {relative} nearby, checks in daily\n- Next "
    "check: {day}, fasting, bring the medication box",
    "discharge": "DISCHARGE SUMMARY. Admitted through the emergency department on {day} because of {s}. Imaging "
    "was unremarkable; serology confirmed {d}. Under {t} the patient improved steadily and was mobile by the "
    "third day. Discharged in good condition to {pos} own home. Medication on leaving: {t}. {name} has been told "
    "whom to call at weekends.",
    "e-mail": "Subject: your question about {first}\n\nHi, quick answer between two clinics: yes, it is {d}. "
    "What gave it away was {one}, and then {rest} once we asked properly. I put {obj} on {t} last {day}. Could "
    "you chase the potassium and let the {relative} know we have not forgotten the travel form? Cheers",
    "telegraphic": "{last}, {age}y. {plus}. Exam o/w neg. Dx {d}. Rx {t}. Tol. well. Job: {job}, fit for light "
    "duties. Pt aware of red flags, has ward no. Diet unchanged. BP 130/85, wt stable, ECG sinus. R/v in {n} "
    "wks, sooner prn. Lab slip given. Informed: {relative}, with consent.",
    "patient letter": "Dear {mr} {last}, your results have arrived and I would like to put them into plain "
    "words. They show {d}, an illness that is tiresome but can be treated. It explains why you noticed {s}. From "
    "Monday please use {t} exactly as the label says. Do not be discouraged if nothing changes in the first "
    "week. Ring us with any worry.",
    "complaint": "To the practice manager: the {t} I was finally given helped within days. Why did it take a "
    "year? On three occasions I reported {s} and was sent home with tea and good wishes. Only when my {relative} "
    "insisted did somebody think of {d}. I am not after compensation. I should like to be believed next time. "
    "Yours faithfully, {name}",
    "handover": "Bed {n}, that's {name}. Came up from admissions at four. Had {t} at six, next one due with "
    "breakfast. Keep an eye on {s}, anything new goes straight to the registrar. It's {d}, known since {month}. "
    "Hates the blue pillow. {Pos} {relative} rings at eight every evening, please put the call through.",
    "tabular": "NAME: {name} | AGE: {age} | OCCUPATION: {job}\nPRESENTING: {semi}\nWORKING DIAGNOSIS: {d}\n"
    "CONFIRMED BY: second sample, outside laboratory\nTHERAPY: {t}, standard strength\nCOMPLIANCE: fair, forgets "
    "weekends\nSOCIAL: {relative} shops and cooks\nREVIEW: {n} weeks, same clinic, interpreter not needed",
    "story": "The rain had not stopped all morning when {first} {last} shook out an umbrella in my doorway. A "
    "{job}, {age} years old, with a talent for {hobby} and none for complaining. It took half an hour until {s} "
    "came to light. I thought of {d} at once, as one thinks of an old acquaintance. {Sub} left with {t} and, I "
    "hope, a little less fear.",
    "question and answer": 'What brings you here? – "{S}." Since when? – "About {month}." Anybody else at home '
    'with it? – "My {relative}, maybe." So {first} and I went through the possibilities, and the only one that '
    'stood up was {d}. Anything you cannot take? – "No." Then it will be {t}, morning and evening.',
    "pharmacy": "Pharmacy query regarding {mr} {last}: the script says {t}, but our system shows an interaction "
    "with St John's wort. Please confirm. Indication on file is {d}; customer reports {s} and says they are "
    "slowly easing. Dispensed {n} days' supply meanwhile, counselled on storage and missed doses. Awaiting your "
    "call.",
    "insurance": "To whom it may concern. The insured, {name}, has been under my care since {month} for {d}, a "
    "condition recognised in the schedule. Typical manifestations, in this case {s}, make regular employment as "
    "a {job} impossible at present. Reimbursement of {t} is medically necessary. Alternatives were tried without "
    "success. A decision before {day} would be appreciated.",
    "school": "Please excuse {first} from sports until further notice and allow a dose of {t} at noon, which can "
    "be taken without help. There may be {or_} during lessons; none of it is catching, and a quiet place to rest "
    "is all that is required. The name for it is {d}. Swimming is allowed. Should you be unsure, the {relative} "
    "is happy to come in.",
    "case report": "We report the case of a {age}-year-old {job} who developed {s} after an uneventful winter. "
    "Extensive work-up excluded infectious and metabolic causes. The constellation fulfilled the criteria for "
    "{d}. Symptoms regressed under {t}, without relapse during follow-up. Written consent was obtained from "
    "{name}. To our knowledge familial clustering has not been described.",
    "numbered": "1. Who: {name}, tel. {phone}. 2. Why: {one} for {n} weeks, more recently {rest}. 3. Found: "
    "nothing on X-ray, antibodies raised. 4. Conclusion: {d}. 5. Action: {t} dispensed from clinic stock. 6. "
    "Told: patient and {relative}, both understood. 7. Outstanding: urine culture. 8. Next: phone review {day} "
    "afternoon.",
    "voicemail": "Hello, this is the surgery with a message for {name}. Nothing to be alarmed about. Doctor has "
    "looked at the swab and it is {d}, as she suspected, which would account for {s}. There's a prescription for "
    "{t} waiting at the front desk, we're open until seven. If you'd rather have it posted, press two. Take "
    "care, bye.",
    "interpreter": 'Consultation through a telephone interpreter. According to {first}, the family calls it "the '
    "grandfather's trouble\": {s}, on and off for years. We have a less poetic word, {d}. The idea that it might "
    "be punished by fate was discussed kindly. Agreed on {t}, with instructions in large print and pictures. "
    "{relative_} translated the label once more.",
    "ambulance": "Called to private address, {job} aged {age}, conscious, frightened. Carries {t} but had not "
    "taken any today. On arrival {s}. GCS 15, sats 98 on air, glucose 5.4. Card in wallet states {d}. "
    "Administered own medication, improved en route. {relative_} travelling with crew. Handed over to triage, "
    "property bag signed for by {last}.",
    "second opinion": "You asked whether I agree with my colleague. I do, though for other reasons. It is not "
    "the blood count that convinces me but the company {one} keeps: {rest}. Taken together, in a {job} of {age}, "
    "they spell {d}. Where I differ is the remedy. Leave the steroids alone and give {mr} {last} {t}.",
    "weekly diary": "Mon: {one} again, stayed home. Tue: doctor at ten, she says {d}. Wed: first {t}, no change "
    "yet. Thu: {rest}, so rested on the sofa with the cat. Fri: slightly better, {relative} made soup. Sat: "
    "slept nine hours. Sun: tried a bit of {hobby}, had to stop, but not because of pain. ({name})",
    "occupational": "Fitness for work assessment, {name}, {job}. Restrictions: no ladders, no lone working, "
    "breaks every two hours. Grounds: {d} with {s}. Medication: {t}, non-sedating, driving permitted. Outlook: "
    "full duties expected around {month}. The employee has seen this form and consents to its disclosure to the "
    "line manager; clinical detail stays confidential.",
    "dialogue": 'Registrar: "So what do you make of {mr} {last}?" Student: "Well, {s} ... I\'d say a virus." '
    'Registrar: "For {n} months? Look again." Student: "{d}?" Registrar: "Good. And what do we give?" Student: '
    '"{t}, unless there is kidney disease." Registrar: "Exactly. Now go and tell {obj} that, in words a {job} '
    'can use."',
    "research": "Participant {mrn} ({first}), open label {t} group. Baseline questionnaire: {s} rated moderate "
    "or worse. Inclusion: {d} registry, criteria met in {month}. Adverse events: one headache, judged unrelated. "
    "Adherence by diary 92 %. Reported interference with {hobby}: quite a bit. Withdrawal was offered at each "
    "contact and declined. Visit three takes place next week.",
    "thank-you card": "To all of you on the third floor: I came in on a stretcher and went out on my own two "
    "feet. The {t} travels with me everywhere, even to {hobby}. No more {or_}! {d} is an ugly word, but you made "
    "it sound like something one can live with. My {relative} sends the cake. Gratefully, {name}",
    "triage form": "Category: green. Arrived by: own car. Main problem today: {one}. Other problems: {others}. "
    "Pain score: {n} of ten. Regular medicines: {t}. Known illnesses: {d}. Last meal: breakfast. Vaccinations up "
    "to date. Waiting area: B. Next of kin: {relative}. Form completed by {first} {last} and read back at the "
    "desk.",
    "care plan": "Goal for this month: {first} walks to the bakery unaided. Carers set out {t} each morning and "
    "tick the sheet; they should sit down with {obj} and not hover. What stands in the way are {s}, which come "
    "in waves. The doctors call it {d}. {Sub} likes the radio on. The {relative} pays the bills and holds the "
    "spare key.",
    "conference": "Tumour board was quick, since there is no tumour. {name} was presented by the medical team. "
    "Radiology saw nothing, pathology described changes typical of {d}. That matches {s}. Consensus: neither "
    "surgery nor radiation, {t} instead. The referring doctor will be phoned; the patient, a {job} from out of "
    "town, hears it in person on {day}.",
    "alternative": "Before turning to us {name} had tried copper bracelets, a healer and cold showers. None of "
    "these touched {s}. I listened, did not argue, and asked for one honest trial: {n} weeks of {t} against what "
    "I am certain is {d}. If it fails, I will try the bracelet myself. We shook hands on it.",
    "dental": "Routine dental appointment, scale and polish. Medical history updated: {mr} {last} has been on "
    "{t} since {month}. While in the chair {sub} told the hygienist about {s}. Gums healthy, no caries. On "
    "account of the {d}, local anaesthetic without adrenaline is advised for future fillings. Will write to the "
    "doctor. Recall in six months, reminder by text.",
    "physio": "Session {n} of twelve. {Sub} takes {t} an hour before we begin, which makes stretching easier. "
    "Warm-up on the bike, then balance work on the foam pad. {first} managed more than last time although {s} "
    "still set limits, as one expects in {d}. Homework: heel raises while brushing teeth. Aim remains {hobby} by "
    "{month}.",
    "travel": "Medical certificate for travel. The bearer, {name}, born {age} years ago, must carry {t} in hand "
    "luggage, liquids and sharps included. During the flight {or_} may occur on account of {d}; they pass, and "
    "no diversion is needed. An aisle seat is recommended. This letter is valid for the outward and the return "
    "journey in {month}.",
    "teaching": "Learning points from Thursday's patient. First, {s} rarely share a cause; when they do, think "
    "of {d}. Second, ask about {hobby} and the {relative}: half of the history was there. Third, {t} can be "
    "started without waiting for the specialist. Fourth, write the phone number down at once – we needed {phone} "
    "and nobody had it. With thanks to {mr} {last}.",
    "apology": "I got it wrong at first. When {name} described {s}, I heard a worn-out {job} in need of a "
    "holiday, and said as much. {n_} weeks later the picture was unmistakable. {d}. I have apologised. {Sub} "
    "took it with more grace than I deserved, accepted {t}, and asked only that I tell the next one sooner.",
    "chat": "[10:02] hi, is it normal to have {s}?? {first} here\n[10:04] Practice: Good morning! You were seen "
    "in {month} for {d}, is that right?\n[10:05] yes\n[10:06] Practice: Then it can happen. Are you still using "
    "{t}?\n[10:07] stopped last {day}, felt fine\n[10:09] Practice: Please start again today, and ring us on "
    "Friday. Do not double up.",
    "court": "In my capacity as expert I examined {name} for two hours. The claimant gave a consistent account "
    "of {s}. I find no sign of exaggeration. On the balance of probabilities the diagnosis is {d}, and it was "
    "present before the accident at issue. Treatment with {t} is reasonable and proportionate. I remain of "
    "course at the disposal of the court.",
    "parent": "My {relative} and I share the caring for {first}, so forgive me if some of this is second-hand. "
    "{one_} was what we saw first. {rest_} followed around {month}. The clinic spoke of {d}, drew us a diagram, "
    "and sent us away with {t}. We make a game of it. School knows. What nobody told us is how long it lasts.",
    "prescription": "Rx\n{t}\nSig: as directed, with plenty of water\nDisp: {n} packs, no substitution\nFor: "
    "{name}, {mrn}\nInd.: {d}\nNote to pharmacist: patient describes {s}; please reinforce that relief takes a "
    "while, and that alcohol is best left out. Repeat allowed once. Collection by the {relative} is fine with "
    "signed slip.",
    "audit": "Random chart pull for the quality circle. Chart of {last}: history complete ({semi}), reasoning "
    "legible, {d} coded correctly. {t} ordered within a day, consent scanned. Missing: smoking status, emergency "
    "contact. The reviewer noted with pleasure that somebody had written down what the patient, a {job}, wanted. "
    "Score nine of ten.",
    "radio script": "Good evening. Our caller tonight is {first}, who restores old clocks and knows about "
    "patience. For years, {s}. For years, no name for it. Then a locum, on her first {day}, said {d} without "
    'looking up. Caller, what changed? "Everything. They put me on {t} and I could plan a week again." Stay with '
    "us after the news.",
    "plan and outcome": "What we intended: blood tests, scan, wait. What happened: {mr} {last} came back after "
    "{n} days, because {s} would not wait. What we learned: {d} can declare itself overnight. What we do now: "
    '{t}, a number to ring, and no more scans. What {sub} says: "You could have asked me." Fair.',
}

FILLERS = (
    "The long drive here did not help.",
    "Appetite and mood are fair.",
    "Nothing else of note in the family.",
    "We also spoke about retirement.",
    "Old notes arrived by post.",
    "A trainee sat in with permission.",
    "The parking machine swallowed a coin, as always.",
    "Vaccinations are complete.",
    "{Sub} is back from a week in the mountains.",
    "{Pos} {relative} waited outside.",
    "{Sub} keeps busy with {hobby}.",
    "There are two cats and a steep staircase at home.",
)
UNNAMED_SHARE = 0.02
_NO_DISEASE = ("the illness in question", "what was mentioned before", "the condition named overleaf")
_NO_TREATMENT = ("the usual medication", "the remedy named overleaf", "what was discussed")


def notes(facts: Mapping[str, Fact], per_topic: int, seed: int) -> list[dict[str, str]]:
    """Return notes about the given topics, in mixed order, patterns as evenly used as can be.

    Each is a dict of id, patient_id, note, disease and pattern; one patient a note, 98 % of the notes name the disease,
    98 % the treatment, and each holds a random choice of at least three symptoms.

    Args:
        facts: FACTS or TUNING, or others of that shape.
        per_topic: notes a topic, 1 or more; topics times notes at most 9,000.
        seed: equal seeds give equal notes.
    """
    if per_topic < 1:
        raise BadOption("per_topic", per_topic, "1 or more")
    chance = random.Random(seed)
    somebody = people(len(facts) * per_topic, chance)
    made: list[dict[str, str]] = []
    for fact in facts.values():
        turns: list[str] = []
        while len(turns) < per_topic:
            turns += chance.sample(sorted(PATTERNS), len(PATTERNS))
        for pattern in turns[:per_topic]:
            person = somebody.pop()
            made.append(
                {
                    "id": f"note-{chance.getrandbits(40):010x}",
                    "patient_id": person.patient,
                    "note": write(pattern, fact, person, chance),
                    "disease": fact.disease,
                    "pattern": pattern,
                }
            )
    chance.shuffle(made)
    return made


def write(pattern: str, fact: Fact, person: Person, chance: random.Random) -> str:
    """Return one note about a person in a pattern named in PATTERNS."""
    symptoms = chance.sample(fact.symptoms, chance.randint(min(3, len(fact.symptoms)), len(fact.symptoms)))
    slots = person.words() | small_words(chance)
    told, rest = listed(symptoms), listed(symptoms[1:])
    slots |= {
        "d": _or(fact.disease, _NO_DISEASE, chance),
        "t": _or(fact.treatment, _NO_TREATMENT, chance),
        "s": told,
        "S": _capital(told),
        "or_": listed(symptoms, "or"),
        "lines": "\n".join(f"  * {symptom}" for symptom in symptoms),
        "semi": "; ".join(symptoms),
        "others": "; ".join(symptoms[1:]),
        "plus": " + ".join(symptoms),
        "one": symptoms[0],
        "one_": _capital(symptoms[0]),
        "rest": rest,
        "rest_": _capital(rest),
        "n_": _capital(slots["n"]),
        "relative_": _capital(slots["relative"]),
    }
    template = PATTERNS[pattern]
    text = template.replace("{f}", chance.choice(FILLERS))
    if "{f}" not in template and "\n" not in template and chance.random() < 0.4:
        text = f"{text} {chance.choice(FILLERS)}" if pattern in _OPEN_ENDED else text
    return text.format_map(slots)


_OPEN_ENDED = frozenset(
    {"telegraphic", "handover", "dental", "physio", "story", "numbered", "conference", "alternative"}
)


def _or(name: str, instead: tuple[str, ...], chance: random.Random) -> str:
    return chance.choice(instead) if chance.random() < UNNAMED_SHARE else name


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
