"""Moving about, searching, copying, themes, sizes: what is on every screen."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib

import pytest

from explainer.tui.settings import read_settings, remember, remember_command, remembered_command
from explainer.tui.theme import NAMES, first_theme, next_theme
from tests.tui.conftest import WIDE, copy_example, flat, hear, opened, press, see, settle, shown, until

SCREENS = dict(zip("123456", ("finding", "fix", "verify", "history", "rules", "environment"), strict=True))


@pytest.mark.asyncio
async def test_every_screen_has_its_number(project) -> None:
    """1 to 6; escape goes back to the finding."""
    async with opened(project, "train.log") as pilot:
        for key, name in SCREENS.items():
            await press(pilot, key)
            assert pilot.app.at == name
        await press(pilot, "escape")
        assert pilot.app.at == "finding"


@pytest.mark.asyncio
async def test_only_what_changes_is_made_anew(project) -> None:
    """The finding stays as it was read, down to the line; keys that go on being offered stay too."""
    async with opened(project, "train.log") as pilot:
        page, keys = pilot.app.query_one("#left"), pilot.app.query_one("Keys")
        before, offered = list(page.children), list(keys.children)
        await press(pilot, "j", "j", "1")
        assert list(keys.children) == offered
        await press(pilot, "4", "1")
        assert list(page.children) == before
        assert page.scroll_y == 2
        assert [one.description for one in keys.children] == [one.description for one in offered]


@pytest.mark.asyncio
async def test_a_source_that_was_edited_is_shown_as_it_is(project) -> None:
    """In an editor, or by a fix that was applied."""
    path = project / "train.py"
    async with opened(project, "train.log") as pilot:
        await see(pilot, "input_pos.add_(1)")
        await press(pilot, "4")
        path.write_text(path.read_text().replace("input_pos.add_(1)", "input_pos.add_(1)  # counted"))
        await press(pilot, "1")
        await see(pilot, "# counted")


@pytest.mark.asyncio
async def test_an_event_of_a_tab_that_has_been_left(project) -> None:
    """It comes late, when another screen was asked for meanwhile, and does not bring its own back."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "3", "1")
        from textual.widgets import Tab, Tabs

        tabs = pilot.app.query_one(Tabs)
        tabs.post_message(Tabs.TabActivated(tabs, tabs.query_one("#tab-verify", Tab)))
        await settle(pilot)
        assert (pilot.app.at, tabs.active) == ("finding", "tab-finding")


@pytest.mark.asyncio
async def test_tabs_are_clicked(project) -> None:
    """The mouse does what the numbers do; a key in the footer is clicked too."""
    async with opened(project, "train.log") as pilot:
        await pilot.click("#tab-rules")
        await press(pilot)
        assert pilot.app.at == "rules"
        await pilot.click("#tab-fix")
        await press(pilot)
        await see(pilot, "input_pos=None")


@pytest.mark.asyncio
async def test_keys_of_vi_and_arrows(project) -> None:
    """j, k, g and G move the page; in a list they move its cursor."""
    async with opened(project, "train.log") as pilot:
        page = pilot.app.query_one("#left")
        await press(pilot, "j", "j", "k")
        assert page.scroll_y == 1
        await press(pilot, "G")
        assert page.scroll_y == page.max_scroll_y > 1
        await press(pilot, "g", "down")
        assert page.scroll_y == 1
        await press(pilot, "5", "j", "j", "k")
        assert pilot.app.query_one("#found").highlighted == 1


@pytest.mark.asyncio
async def test_findings_and_fixes_are_stepped_through(tmp_path) -> None:
    """] and [ choose the next and previous finding, on the screen of fixes the fix."""
    project = copy_example("mistral-mask", tmp_path)
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "right_square_bracket")
        await see(pilot, "without checkpointing")
        await press(pilot, "left_square_bracket", "left_square_bracket")
        assert pilot.app.session.at_fix == 0


@pytest.mark.asyncio
async def test_side_by_side_where_there_is_room(project) -> None:
    """d turns the diff; in a narrow terminal it says why it does not."""
    async with opened(project, "train.log", size=WIDE) as pilot:
        await press(pilot, "f", "d")
        row = next(line for line in shown(pilot).split("\n") if "input_pos=None)" in line)
        assert "logits = model(token, input_pos) " in row
        await pilot.resize_terminal(80, 24)
        await press(pilot, "d", "d")
        await hear(pilot, "side by side needs")


@pytest.mark.asyncio
async def test_resizing(project) -> None:
    """Source and evidence stand beside the text where there is room, and in it where there is not."""
    async with opened(project, "train.log") as pilot:
        assert not pilot.app.query_one("#right").display
        await pilot.resize_terminal(140, 45)
        await until(pilot, lambda: pilot.app.query_one("#right").display)
        await see(pilot, "logits = model(token, input_pos)")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not pilot.app.query_one("#right").display)


@pytest.mark.asyncio
async def test_search_with_typos(project) -> None:
    """/ searches from every screen; enter goes to the list, whose page is shown."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "slash")
        await pilot.press(*"sharde mask chekpointing", "enter")
        await until(
            pilot,
            lambda: (
                pilot.app.has_shown("rules")
                and pilot.app.pane("rules").chosen == "inplace/shared-mask-under-checkpointing"
            ),
        )
        await see(pilot, "inplace/shared-mask-under-checkpointing")
        await press(pilot, "slash")
        await pilot.press(*"zzzzqqqq")
        await until(pilot, lambda: "nothing found" in flat(pilot))
        await press(pilot, "escape", "q")
    assert pilot.app.return_code == 0


@pytest.mark.asyncio
async def test_what_is_copied(project) -> None:
    """The card, the diff, the page: what the screen is about."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "c")
        assert "inplace/cache-updated-in-training" in pilot.app.clipboard
        await press(pilot, "f", "c")
        assert pilot.app.clipboard == pilot.app.session.fix.patch
        await press(pilot, "a", "4", "c")
        assert "+        logits = model(token, input_pos=None)" in pilot.app.clipboard
        await press(pilot, "5", "c")
        assert pilot.app.clipboard == pilot.app.pane("rules").page
        pilot.app.session.command = ("python", "my train.py")
        await press(pilot, "3", "c")
        assert pilot.app.clipboard == "python 'my train.py'"


@pytest.mark.asyncio
async def test_help_names_every_key(project) -> None:
    """Each key of the footer stands on the page of ?, which closes again."""
    from explainer.tui.keys import HELP, MAIN

    named = " ".join(key for _, keys in HELP for key, _ in keys).split()
    assert {one.key_display or one.key for one in MAIN} <= set(named)
    async with opened(project, "train.log") as pilot:
        await press(pilot, "question_mark")
        await see(pilot, "take the last edit back, byte for byte")
        await press(pilot, "escape", "2")
        assert pilot.app.at == "fix"


@pytest.mark.asyncio
async def test_the_palette_runs_a_key(project) -> None:
    """ctrl+p lists what the keys do; enter does it."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "ctrl+p", *"copy the card")
        await pilot.pause(0.3)
        await press(pilot, "enter")
        await pilot.pause(0.2)
        assert "inplace/cache-updated-in-training" in pilot.app.clipboard


@pytest.mark.asyncio
async def test_an_editor_without_a_terminal(project) -> None:
    """Where the terminal cannot be lent, the place is named."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "e")
        await hear(pilot, "train.py:17")


@pytest.mark.asyncio
async def test_a_key_that_does_nothing_here_says_why(project) -> None:
    """No key is silent."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "x", "u", "n", "5", "a")
        for said in ("nothing runs", "no patch of this session", "no red verification", "not on this screen"):
            await hear(pilot, said)


@pytest.mark.asyncio
async def test_an_environment_of_another_machine(project) -> None:
    """--env is what the screen shows; a file that is none is named."""
    package = {"name": "torch", "version": "2.9.1", "source": "the cluster"}
    (project / "env.json").write_text(json.dumps({"schema": "gradfix.environment/1", "packages": [package]}))
    async with opened(project, "train.log", env=str(project / "env.json")) as pilot:
        await press(pilot, "6")
        await until(pilot, lambda: "torch" in shown(pilot))
        await see(pilot, "torch 2.9.1 the cluster")
    (project / "env.json").write_text("{}[")
    async with opened(project, "train.log", env=str(project / "env.json")) as pilot:
        await see(pilot, "no environment of")
        await press(pilot, "6")
        await until(pilot, lambda: "no environment of" in flat(pilot))


@pytest.mark.asyncio
async def test_a_theme_is_remembered(project) -> None:
    """ctrl+t goes to the next one, which the next session begins with."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "ctrl+t", "ctrl+t")
        assert pilot.app.theme == "ansi"
    async with opened(project, "train.log") as pilot:
        assert pilot.app.theme == "ansi"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "name", ["nord", *(pytest.param(one, marks=pytest.mark.slow) for one in ("light", "ansi", "high-contrast"))]
)
async def test_every_theme_shows_every_screen(project, name) -> None:
    """Our own and one of Textual's, which does not know the names of our styles."""
    async with opened(project, "train.log", size=WIDE) as pilot:
        pilot.app.theme = name
        await press(pilot, "2", "question_mark")
        await see(pilot, "take the last edit back")


@pytest.mark.asyncio
async def test_nothing_can_be_remembered(project, _own_folders) -> None:
    """An unwritable folder of settings costs nothing but the memory."""
    (_own_folders / "gradfix").write_text("a file where the folder should be")
    async with opened(project, "train.log") as pilot:
        await press(pilot, "ctrl+t")
        assert pilot.app.theme == "light"
    assert read_settings() == {}


@pytest.mark.parametrize("text", ["", "[]", '{"theme": 3, "commands": 4}', "\x00"])
def test_damaged_settings(_own_folders: pathlib.Path, text: str) -> None:
    """What cannot be read is as if nothing had been remembered, and can be overwritten."""
    (_own_folders / "gradfix").mkdir()
    (_own_folders / "gradfix" / "interface.json").write_text(text)
    assert first_theme(read_settings().get("theme")) == "dark"
    assert remembered_command("/p") == ""
    remember_command("/p", "python train.py")
    assert remembered_command("/p") == "python train.py"


def test_settings_are_the_persons_own(_own_folders: pathlib.Path) -> None:
    """A command may hold a secret: nobody else can read it."""
    remember("theme", "light")
    assert os.stat(_own_folders / "gradfix" / "interface.json").st_mode & 0o777 == 0o600


def test_the_first_theme(monkeypatch) -> None:
    """A terminal that says that it is light gets the light one; four of them follow each other."""
    monkeypatch.setenv("COLORFGBG", "0;15")
    assert first_theme(None) == "light"
    assert first_theme("no such theme") == "light"
    assert first_theme("ansi") == "ansi"
    assert [next_theme(one) for one in (*NAMES, "nord")] == [*NAMES[1:], NAMES[0], NAMES[0]]


@pytest.mark.asyncio
async def test_a_screen_that_is_asked_for_twice_at_once(tmp_path) -> None:
    """Its widgets are made once, and whoever asks on the way finds them or nothing."""
    async with opened(tmp_path) as pilot:
        app = pilot.app
        shows = [asyncio.create_task(app.action_show("rules")) for _ in range(2)]
        await asyncio.sleep(0)
        seen = []
        while not all(one.done() for one in shows):
            seen.append(app.pane("rules").chosen)
            await asyncio.sleep(0)
        assert None in seen and app.pane("rules").chosen is not None
        assert len(app.pane("rules").query("#found")) == 1


@pytest.mark.asyncio
async def test_steps_of_a_plain_run(tmp_path) -> None:
    """It reads no loss, and looks at few of the steps: both are said."""
    from explainer.model.verification import LiveStep

    async with opened(tmp_path, size=WIDE) as pilot:
        await press(pilot, "3")
        step = LiveStep(pid=1, optimizer="0 SGD", step=40, is_seen=True, norm=2.5)
        pane = pilot.app.pane("verify")
        pane.begin("runs", "python train.py")
        pane.feed([], [step], "step 40")
        await see(pilot, "a plain run does not read it; v does")
        await see(pilot, "2.5  1 of 40 steps")
