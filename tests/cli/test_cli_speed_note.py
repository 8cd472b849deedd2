"""Whoever trains without compiled code is told what would make it faster."""

from smoothcde.cli import telling


def test_a_missing_compiler_is_worth_a_note(monkeypatch, capsys):
    monkeypatch.setattr(telling, "why_not", lambda source: "there is no C compiler 'cc'; install one, or name it by CC")
    monkeypatch.setattr(telling.torch.cuda, "is_available", lambda: False)
    telling.Teller().note_on_speed()
    said = capsys.readouterr().err
    assert said == (
        "Note: training runs in plain torch, at about half its speed: there is no C compiler 'cc'; install one, or "
        "name it by CC\n"
    )


def test_compiled_code_is_not_worth_a_note(monkeypatch, capsys):
    monkeypatch.setattr(telling, "why_not", lambda source: None)
    telling.Teller().note_on_speed()
    assert capsys.readouterr().err == ""
