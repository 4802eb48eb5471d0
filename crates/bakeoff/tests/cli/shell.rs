//! `bakeoff completions` and `bakeoff man`.

use crate::support::TestDir;

#[test]
fn completions_are_generated_for_every_shell() {
    let dir = TestDir::new();
    for (shell, expected) in [
        ("bash", "complete -F _bakeoff"),
        ("zsh", "#compdef bakeoff"),
        ("fish", "complete -c bakeoff"),
        ("elvish", "edit:completion:arg-completer[bakeoff]"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName 'bakeoff'"),
    ] {
        let output = dir.run(&["completions", shell]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.transcript());
        assert!(output.stdout.contains(expected), "{shell}: {}", output.stdout);
        assert!(output.stdout.contains("suite-threshold"), "{shell}: {}", output.stdout);
    }
    let output = dir.run(&["completions", "tcsh"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
}

#[test]
fn bash_accepts_its_completion_script() {
    let dir = TestDir::new();
    let script = dir.run(&["completions", "bash"]).stdout;
    let dir = dir.write("bakeoff.bash", script);
    let probe = "source bakeoff.bash; COMP_WORDS=(bakeoff comp); COMP_CWORD=1; \
                 _bakeoff bakeoff comp bakeoff; echo \"${COMPREPLY[@]}\"";
    let bash = std::process::Command::new("bash")
        .args(["--norc", "-c", probe])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), "compare completions");
}

#[test]
fn man_prints_one_page_or_writes_one_per_command() {
    let dir = TestDir::new();
    let output = dir.run(&["man"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stdout.contains(".TH bakeoff 1"), "{}", output.stdout);
    let output = dir.run(&["man", "--out", "man/man1"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let pages = dir.path().join("man/man1");
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(read("bakeoff.1").contains("bakeoff\\-run(1)"));
    let run = read("bakeoff-run.1");
    assert!(run.contains("bakeoff run") && run.contains("suite\\-threshold"), "{run}");
    let (top, map) = (read("bakeoff.1"), read("bakeoff-map.1"));
    assert!(top.contains("\n.SH \"EXIT STATUS\"\n0 passed"), "{top}");
    assert!(
        map.contains("\n.SH EXAMPLES\n") && map.contains("\n.SH \"EXIT STATUS\"\n0 every row"),
        "{map}"
    );
    for entry in std::fs::read_dir(&pages).unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!page.contains(".SH EXTRA") && !page.contains("\\-help(1)"), "{page}");
    }
    assert!(read("bakeoff-trace-http.1").contains("bakeoff trace http"));
    assert_eq!(output.stdout, format!("wrote {} pages to man/man1\n", count(&pages)));

    let blocked = dir.write("file", "");
    assert_eq!(blocked.run(&["man", "--out", "file/man1"]).code, 4);
}

fn count(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}
