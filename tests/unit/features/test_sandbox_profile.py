"""What a profile keeps from writing and from sight, read from the folders at each launch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plan_mode_nb.features.sandbox import bubblewrap, landlock
from plan_mode_nb.features.sandbox.profile import Grounds, Profile, is_whole_system, profile_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace, without links in its path."""
    made = Path(os.path.realpath(tmp_path)) / "workspace"
    made.mkdir()
    return made


def guarded(grounds: Grounds) -> set[str]:
    """What is kept, below the workspace."""
    profile = profile_of(grounds, writes=True)
    return {str(path.relative_to(profile.root)) for path in profile.guarded}


def folders(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)


def test_repositories_are_kept_at_the_top_and_some_folders_down(root: Path) -> None:
    """Hooks and configuration in them run with the person's next git command. A file `.git` (a worktree's) counts too."""
    folders(root, ".git", "a/.git", "a/b/c/.git", "a/b/c/d/.git", "node_modules/x/.git")
    (root / "work").mkdir()
    (root / "work" / ".git").write_text("gitdir: elsewhere")
    assert guarded(Grounds(root, home=root.parent)) == {".git", "a/.git", "a/b/c/.git", "work/.git"}


def test_a_repository_without_a_folder_of_its_own_yet_is_not_made(root: Path) -> None:
    """Nothing is put into the workspace to protect it."""
    assert guarded(Grounds(root, home=root.parent)) == set()
    assert list(root.iterdir()) == []


def test_environments_in_the_workspace_are_kept(root: Path) -> None:
    """The kernel loads them unconfined; one that is elsewhere needs nothing, and the workspace itself is never one."""
    folders(root, ".venv", "kernels")
    trusted = (root / ".venv", root / "kernels", root / "missing", root.parent, root)
    assert guarded(Grounds(root, home=root.parent, trusted=trusted)) == {".venv", "kernels"}


def test_in_the_persons_own_folder_hidden_files_are_kept(root: Path) -> None:
    """Shells, git and Jupyter run what they hold."""
    folders(root, ".ssh", "notebooks")
    (root / ".bashrc").write_text("")
    (root / ".link").symlink_to(root / "notebooks")
    assert guarded(Grounds(root, home=root)) == {".ssh", ".bashrc"}
    assert guarded(Grounds(root.parent, home=root)) == {"workspace/.ssh", "workspace/.bashrc"}


def test_nothing_is_looked_for_where_nothing_may_be_written(root: Path) -> None:
    """Read-only is read-only."""
    folders(root, ".git")
    assert profile_of(Grounds(root, home=root), writes=False).guarded == ()


def test_paths_are_real_ones(root: Path) -> None:
    """A mount on a link would cover something else."""
    folders(root, "runtime")
    (root.parent / "link").symlink_to(root)
    profile = profile_of(
        Grounds(root.parent / "link", home=root.parent, hidden=(root.parent / "link" / "runtime", root / "gone")), writes=True
    )
    assert (profile.root, profile.hidden) == (root, (root / "runtime",))


def test_the_root_of_the_file_system_is_told(root: Path) -> None:
    """Through a link too."""
    (root / "all").symlink_to("/")
    assert is_whole_system(Grounds(root / "all", home=root))
    assert not is_whole_system(Grounds(root, home=root))


def mounts(argv: list[str], option: str) -> list[str]:
    """The destinations of an option, in order."""
    width = 1 if option == "--tmpfs" else 2
    return [argv[at + width] for at, word in enumerate(argv) if word == option]


def test_the_order_of_mounts_keeps_what_must_be_kept() -> None:
    """The workspace over the private folders, what it must not hold open over the workspace, what is hidden over both."""
    profile = Profile(
        Path("/tmp/w"), True, False, (Path("/tmp/w/.git"),), (Path("/tmp/w/runtime"),), (Path("/tmp/w/runtime/results"), Path("/tmp/env"))
    )
    argv = bubblewrap.wrapped("bwrap", profile, ["true"])
    order = [argv.index(word) for word in ("/proc", "/tmp", "/tmp/env", "/tmp/w", "/tmp/w/.git", "/tmp/w/runtime")]
    assert order == sorted(order)
    assert mounts(argv, "--bind") == ["/tmp/w"]
    assert argv.index("/tmp/w/runtime") < len(argv) - 1 - argv[::-1].index("/tmp/w/runtime/results")
    assert argv[-2:] == ["--", "true"]


@pytest.mark.parametrize("flag", "--unshare-user --disable-userns --unshare-pid --unshare-ipc --unshare-net --die-with-parent".split())
def test_every_measured_flag_is_there(flag: str) -> None:
    """Each closes a way out that was found open without it."""
    argv = bubblewrap.wrapped("bwrap", Profile(Path("/w"), False, False), ["true"])
    assert flag in argv
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert argv[argv.index("--remount-ro") + 1] == "/proc"
    assert mounts(argv, "--bind") == []


def test_all_that_confines_stays_in_the_group_that_is_ended() -> None:
    """A session of its own would leave it."""
    assert "--new-session" not in bubblewrap.wrapped("bwrap", Profile(Path("/w"), False, False), ["true"])


def test_the_network_is_off_unless_it_is_allowed() -> None:
    """Only the setting opens it."""
    assert "--unshare-net" not in bubblewrap.wrapped("bwrap", Profile(Path("/w"), False, True), ["true"])


def test_landlock_allows_everything_around_what_is_hidden(root: Path) -> None:
    """It cannot take a folder out of an allowed one."""
    folders(root, "a", "b/c", "b/d")
    around = list(landlock._around(root, [root / "b" / "c"]))
    assert around == [root / "a", root / "b" / "d"]
