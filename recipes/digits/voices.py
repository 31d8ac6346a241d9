"""The voices of the digits corpus: who speaks, with which synthesiser, in which split.

A `speaker` is the person whose recordings a voice was built from (or, for espeak-ng, which has no
recordings, the variant and accent). Two voices of one person are always in the same split.
"""

from dataclasses import dataclass

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

# Voices built for other languages read the digits from phones (or, for Catalan, a respelling) of
# their own inventory: an English word with a foreign accent. "|" separates alternatives, chosen
# among what an English digit recogniser understood, so they are not always the nearest phone.
CZECH = {
    "zero": "z i: r o u|z i r o:",
    "one": "v a n|u a n",
    "two": "t u:|t j u:",
    "three": "t r i:|s r i:|f r i:",
    "four": "f o: r|f o:",
    "five": "f a j f",
    "six": "s i k s",
    "seven": "s e v e n|s e v n",
    "eight": "e j t",
    "nine": "n a j n",
}
ITALIAN = {
    "zero": "dz i1 r o|dz i1 r o u",
    "one": "w a1 n|u a1 n",
    "two": "t u1 u|t j u1",
    "three": "f r i1|s r i1",
    "four": "f o1 r|f o1 o r",
    "five": "f a1 i v",
    "six": "s e1 k s|s i k s",
    "seven": "s E1 v e n",
    "eight": "e1 i t",
    "nine": "n a1 i n",
}
FINNISH = {
    "zero": "s i: r o u|ts i: r o u",
    "one": "v a n|u a n",
    "two": "t j u:|t u:",
    "three": "t r i:|f r i:",
    "four": "f o: r|f o:",
    "five": "f a i f",
    "six": "s i k s",
    "seven": "s e v e n",
    "eight": "e i t",
    "nine": "n a i n",
}
TELUGU = {
    "zero": "j iy r oo|s iy r oo",
    "one": "v a n",
    "two": "th uw|T uw",
    "three": "t r iy",
    "four": "f oo r",
    "five": "f ay v",
    "six": "s ih k s",
    "seven": "s eh v ih n|s eh v eh n",
    "eight": "ee T|eh y t|ee y t",
    "nine": "n ay n",
}
RUSSIAN = {
    "zero": "z ii r oo u",
    "one": "u aa n|v aa n",
    "two": "t y uu",
    "three": "tt rr ii|f r ii|s r ii",
    "four": "f oo r",
    "five": "f aa j f",
    "six": "ss ii k s",
    "seven": "s ee v n|s ee v a n|s ae v a n",
    "eight": "ee j t",
    "nine": "n aa j n",
}
CATALAN = {
    "zero": "zirou",
    "one": "uan",
    "two": "tu",
    "three": "fri",
    "four": "for",
    "five": "faif",
    "six": "sics",
    "seven": "seven",
    "eight": "eit",
    "nine": "nain",
}


# What each package's copyright file grants. Recorded voices splice or model a person's recordings,
# so we pass on what they say under the same terms; espeak-ng's is only a program's output.
LICENCES = {
    "espeak-ng": "GPL-3+ (the program; its output contains no recordings)",
    "festvox-ca-ona-hts": "LGPL-2.1+",
    "festvox-czech-dita": "GPL-3+",
    "festvox-czech-krb": "GPL-3+",
    "festvox-czech-machac": "GPL-3+",
    "festvox-czech-ph": "GPL-2+",
    "festvox-italp16k": "GPL-2+",
    "festvox-itapc16k": "GPL-2+",
    "festvox-kallpc16k": "CMU and Edinburgh, like BSD",
    "festvox-kdlpc16k": "CMU and Edinburgh, like BSD",
    "festvox-ru": "like BSD",
    "festvox-suopuhe-lj": "LGPL-2+",
    "festvox-suopuhe-mv": "LGPL-2+",
    "festvox-te-nsk": "GPL-2+",
    "festvox-us-slt-hts": "CMU, like BSD",
    "flite": "CMU, like BSD",
}


@dataclass(frozen=True)
class Voice:
    """One voice of one synthesiser."""

    name: str  # ours, used in file names
    engine: str  # "espeak-ng", "flite" or "festival"
    method: str  # how engines.py drives it: espeak, flite, text, hts or phones
    handle: str  # the engine's own name of the voice
    package: str  # the Debian package it comes in
    speaker: str
    split: str  # "train" (validation is drawn from these too) or "test"
    f0: float = 0.0  # the middle of its pitch range in Hz; espeak-ng and HTS know their own
    words: dict[str, str] | None = None  # phones or respellings, where it cannot read English


def _festival(
    handle: str,
    package: str,
    speaker: str,
    split: str,
    method: str,
    f0: float,
    words: dict[str, str] | None = None,
) -> Voice:
    name = f"festival-{speaker}"
    return Voice(name, "festival", method, handle, package, speaker, split, f0, words)


def _flite(speaker: str, split: str, f0: float, handle: str = "") -> Voice:
    name = f"flite-{speaker}"
    return Voice(name, "flite", "flite", handle or speaker, "flite", speaker, split, f0)


def _espeak(handle: str, split: str) -> Voice:
    name = "espeak-" + handle.replace("+", "-").lower()
    return Voice(name, "espeak-ng", "espeak", handle, "espeak-ng", name, split)


RECORDED = (
    _flite("kal", "train", 105, "kal16"),
    _flite("awb", "train", 130),
    _flite("rms", "train", 100),
    _flite("slt", "test", 175),
    _festival("kal_diphone", "festvox-kallpc16k", "kal", "train", "text", 105),
    _festival("ked_diphone", "festvox-kdlpc16k", "ked", "test", "text", 110),
    _festival("cmu_us_slt_arctic_hts", "festvox-us-slt-hts", "slt", "test", "hts", 0),
    _festival("upc_ca_ona_hts", "festvox-ca-ona-hts", "ona", "train", "hts", 0, CATALAN),
    _festival("czech_dita", "festvox-czech-dita", "dita", "train", "phones", 190, CZECH),
    _festival("czech_krb", "festvox-czech-krb", "krb", "train", "phones", 200, CZECH),
    _festival("czech_machac", "festvox-czech-machac", "machac", "train", "phones", 115, CZECH),
    _festival("czech_ph", "festvox-czech-ph", "ph", "train", "phones", 105, CZECH),
    _festival("lp_diphone", "festvox-italp16k", "lp", "train", "phones", 180, ITALIAN),
    _festival("pc_diphone", "festvox-itapc16k", "pc", "train", "phones", 115, ITALIAN),
    _festival("suo_fi_lj_diphone", "festvox-suopuhe-lj", "lj", "train", "phones", 180, FINNISH),
    _festival("hy_fi_mv_diphone", "festvox-suopuhe-mv", "mv", "train", "phones", 110, FINNISH),
    _festival("telugu_NSK_diphone", "festvox-te-nsk", "nsk", "train", "phones", 125, TELUGU),
    _festival("msu_ru_nsh_clunits", "festvox-ru", "nsh", "train", "phones", 110, RUSSIAN),
)

# espeak-ng has no recordings: a formant synthesiser whose variants differ in pitch, formant
# placing, bandwidths and voicing. The held-out ones share neither variant nor accent with training.
# British English is "en" here: "en-gb" silently ignores the variant.
FORMANT_TRAIN = """
    en-us en-us+f1 en-us+f2 en-us+f5 en-us+m1 en-us+m3 en-us+m6 en-us+klatt2 en-us+Andy
    en-us+announcer en-us+grandpa en-us+croak en-us+michel en-us+miguel en-us+Storm en-us+max
    en-us+anika en-us+pablo en-us-nyc+m5 en-us-nyc+Henrique en-us-nyc+ed en-us-nyc+f3
    en en+m2 en+m4 en+klatt4 en+victor en+rob en+f3 en+sandro en-gb-x-rp+f1 en-gb-x-rp+edward
    en-gb-x-rp+m8 en-gb-x-rp+Alex en-gb-x-gbclan+m7 en-gb-x-gbclan+paul en-gb-x-gbcwmd+Hugo
    en-gb-x-gbcwmd+Denis
"""
FORMANT_TEST = "en-gb-scotland+f4 en-029+Gene"
FORMANT = tuple(_espeak(handle, "train") for handle in FORMANT_TRAIN.split()) + tuple(
    _espeak(handle, "test") for handle in FORMANT_TEST.split()
)

VOICES = RECORDED + FORMANT
