"""The page: complete in itself, safe whatever the text, exact in its numbers, split when large."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch

from asr.inspection import page
from asr.inspection.page import Entry
from asr.types import TranscriptWarning, Waveform
from tests.html_page import Parsed
from tests.inspection.planted import SHIFT, record, rows, transcript, wave

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&\'"'


def entry(*, id="example", word="one", heads=1, frames=25, **fields):
    made = record(
        rows((0, 5), (5, 12), (20, 25), frames=frames, heads=heads), ("a", EVIL, "<eos>"), id=id
    )
    made = replace(made, **fields)
    words = ((word, made.start + 0.1, made.start + 0.4),)
    return Entry(transcript(made, *words), wave(made.duration))


def test_complete_in_itself():
    html = page.render([entry(), entry()])
    parsed = Parsed(html)
    assert len(parsed.all("article")) == 2
    for tag, attributes in parsed.elements:
        for name, value in attributes.items():
            if name in ("src", "href", "action", "srcset", "data"):
                assert value.startswith("data:"), (tag, name, value[:60])
    bare = re.sub(r"base64,[A-Za-z0-9+/=]*", "", html)
    assert not re.search(r"https?://|//[a-z]+\.|url\(|@import|fetch\(|XMLHttpRequest", bare)


def test_the_policy_forbids_the_network_and_every_other_script():
    html = page.render([entry()])
    policy = next(m["content"] for m in Parsed(html).all("meta") if "content" in m and
                  m.get("http-equiv") == "Content-Security-Policy")  # fmt: skip
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy, tag
    assert not re.search(r"\son\w+=", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))
    assert " style=" not in html  # the policy would ignore it


def test_whatever_the_text_it_is_only_text():
    one = entry(id=EVIL, word=EVIL)
    evil = replace(
        one.transcript,
        model={"name": EVIL},
        decoding={EVIL: EVIL},
        warnings=(TranscriptWarning("x", EVIL, 0.0, None),),
    )
    parsed = Parsed(page.render([replace(one, transcript=evil, reference=EVIL)], title=EVIL))
    assert len(parsed.all("script")) == 2 and not parsed.all("img")
    (data,) = parsed.data()
    assert data["tokens"][1] == EVIL and data["words"][0][0] == EVIL
    for tag in ("h2", "button", "dd", "p", "title"):
        assert any(name == tag and EVIL in text for name, text in parsed.text), tag


def test_numbers_survive_the_packing():
    torch.manual_seed(0)
    weights = torch.randn(4, 3, 25).mul(3).softmax(-1)
    made = record(weights, start=2.0, duration=0.99)
    samples = wave(3.0).samples + 0.1 * torch.rand(48000)
    parsed = Parsed(
        page.render([Entry(transcript(made, ("w", 2.25, 2.5)), Waveform(samples, 16000))])
    )
    (data,) = parsed.data()
    assert (data["start"], data["shift"], data["duration"]) == (2.0, SHIFT, 0.99)
    assert data["words"] == [["w", pytest.approx(0.25), pytest.approx(0.5)]]
    packed = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(3, 4, 25)
    found = np.array(data["scales"])[:, :, None] * (packed / 255) ** 2
    assert np.abs(found - weights.transpose(0, 1).numpy()).max() < 0.004
    packed = np.frombuffer(base64.b64decode(data["spectrogram"]), np.uint8)
    assert len(packed) == 99 * len(data["hertz"]) and packed.max() == 255
    (audio,) = parsed.all("audio")
    sound, rate = soundfile.read(io.BytesIO(base64.b64decode(audio["src"].split(",")[1])))
    assert rate == 16000
    np.testing.assert_allclose(sound, samples[32000 : 32000 + 15840].numpy(), atol=1e-4)


def test_forced_is_labelled_as_forced_and_free_as_free():
    for mode in ("free", "forced"):
        parsed = Parsed(page.render([entry(mode=mode)]))
        spans = [a for a in parsed.all("span") if a.get("class", "").startswith("mode")]
        assert [a["class"] for a in spans] == ["mode forced" if mode == "forced" else "mode"]
        shown = " ".join(text for tag, text in parsed.text if tag == "span")
        assert ("dictated" in shown) == (mode == "forced")


def test_figures_are_explained():
    parsed = Parsed(page.render([entry()]))
    cells = [text for tag, text in parsed.text if tag == "td"]
    assert "100%" in cells and any("Speech is written down in order" in cell for cell in cells)


def test_heads_and_keyboard_are_there():
    parsed = Parsed(page.render([entry(heads=4)]))
    assert parsed.data()[0]["heads"] == 4
    (view,) = [a for a in parsed.all("div") if a.get("tabindex") == "0"]
    assert "example" in view["aria-label"]


@pytest.mark.parametrize("samples", [0, 100, 16000])
def test_sound_with_nothing_to_hear(samples):
    empty = record(torch.zeros(0, 1, 0), duration=samples / 16000)
    warning = TranscriptWarning("silent-audio", "there is only silence", 0.0, None)
    nothing = replace(transcript(empty), record=None, records=(), warnings=(warning,))
    parsed = Parsed(page.render([Entry(nothing, Waveform(torch.zeros(samples), 16000))]))
    assert any("only silence" in text for _, text in parsed.text)
    assert len(parsed.all("audio")) == (1 if samples else 0)


def test_a_text_without_its_record_is_our_mistake():
    one = entry()
    with pytest.raises(ValueError, match="record=True"):
        page.render([replace(one, transcript=replace(one.transcript, record=None))])


def test_large_reports_are_split_and_linked(tmp_path):
    entries = [entry(id=f"utterance {i}") for i in range(5)]
    size = len(page.render(entries[:1]))
    limit = size + 20_000  # two of them, for a page is mostly script
    pages = page.write(iter(entries), tmp_path / "my report.html", limit=limit)
    assert [path.name for path in pages][:2] == ["my report.html", "my report-2.html"]
    assert 2 <= len(pages) <= 5
    shown, links = [], []
    for path in pages:
        assert path.stat().st_size <= limit
        parsed = Parsed(path.read_text())
        shown += [text for tag, text in parsed.text if tag == "h2"]
        links.append([a["href"] for a in parsed.all("a")][: len(parsed.all("a")) // 2])
    assert shown == [f"utterance {i}" for i in range(5)]
    assert links[0] == ["my%20report-2.html"]
    assert links[1][0] == "my%20report.html"
    assert len(links[-1]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in pages)


def test_one_recording_larger_than_the_limit_has_a_page_of_its_own(tmp_path):
    pages = page.write([entry(), entry()], tmp_path / "r.html", limit=1000)
    assert len(pages) == 2


def test_nothing_to_show_still_says_so(tmp_path):
    (path,) = page.write([], tmp_path / "r.html")
    assert "No recording" in path.read_text()


def test_a_failure_leaves_no_half_page(tmp_path):
    def broken():
        yield entry()
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        page.write(broken(), tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_long_utterance_stays_small():
    frames, tokens = 875, 500
    weights = torch.rand(tokens, 4, frames).softmax(-1)
    made = record(weights)
    html = page.render([Entry(transcript(made), wave(35.0))])
    assert len(html) < 5_000_000
