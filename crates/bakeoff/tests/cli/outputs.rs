//! Export files: links, pipes, devices, standard output.

use crate::support::TestDir;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const SUITE: &str = r#"
[suite]
name = "files"
[cases]
inline = [{ id = "a" }]
[[check]]
kind = "equals"
value = "ok"
[[target]]
name = "t"
model = "sim/pass-1"
prompt = "{{ id }}"
"#;

/// Options that write a file, each with a text that its file contains.
const EXPORTS: [(&str, &str); 4] = [
    ("--jsonl", "\"status\""),
    ("--csv", "case"),
    ("--junit", "<testsuites"),
    ("--markdown", "files"),
];

fn finished_run() -> TestDir {
    let dir = TestDir::with_suite(SUITE);
    assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
    dir
}

#[test]
fn exports_follow_links_and_keep_the_mode() {
    let dir = finished_run();
    for (option, text) in EXPORTS {
        let (file, link) = (dir.path().join(&option[2..]), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        let output = dir.run(&["report", option, "link"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert!(link.is_symlink(), "{option}");
        assert!(std::fs::read_to_string(&file).unwrap().contains(text), "{option}");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{option}");
        std::fs::remove_file(link).unwrap();
    }
}

#[test]
fn exports_write_to_pipes_and_devices() {
    let dir = finished_run();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (option, text) in EXPORTS {
        let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
        let output = dir.run(&["report", option, "pipe"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo(), "{option}");
        let mut received = String::new();
        reader.stdout.take().unwrap().read_to_string(&mut received).unwrap();
        assert!(received.contains(text), "{option}: {received}");
        assert!(reader.wait().unwrap().success());
        let full = dir.run(&["report", option, "/dev/full"]);
        assert_eq!(full.code, 4, "{}", full.transcript());
        assert!(full.stderr.contains("/dev/full"), "{}", full.stderr);
    }
    let run = dir.run(&["run", "--junit", "/dev/null", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
}

#[test]
fn hyphen_is_standard_output_with_nothing_else_on_it() {
    let dir = finished_run();
    for (option, text) in EXPORTS {
        let output = dir.run(&["report", option, "-"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert!(output.stdout.contains(text), "{option}: {}", output.stdout);
        assert!(!output.stdout.contains("verdict: passed"), "{option}: {}", output.stdout);
        assert!(output.stderr.contains("verdict: passed"), "{option}: {}", output.stderr);
    }
    let rows = dir.run(&["report", "--jsonl", "-"]).stdout;
    assert!(
        rows.lines().all(|row| serde_json::from_str::<serde_json::Value>(row).is_ok()),
        "{rows}"
    );
    assert!(!dir.path().join("-").exists());
    for words in [["--jsonl", "-", "--json"], ["--jsonl", "-", "--csv=-"]] {
        let output = dir.run(&[&["report"], &words[..]].concat());
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.transcript().contains("has one use"), "{}", output.transcript());
    }
}

#[test]
fn exports_do_not_replace_files_that_are_read() {
    let suite = SUITE.replace("inline = [{ id = \"a\" }]", "file = \"cases.jsonl\"");
    let dir =
        TestDir::with_suite(&suite).write("cases.jsonl", "{\"id\": \"a\"}\n").write(".env", "");
    symlink("cases.jsonl", dir.path().join("link")).unwrap();
    assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
    let journal = dir.run_folder().join("journal.jsonl");
    let before = std::fs::read(&journal).unwrap();
    for (option, _) in EXPORTS {
        for file in ["bakeoff.toml", "cases.jsonl", "link", ".env", journal.to_str().unwrap()] {
            let output = dir.run(&["run", option, file]);
            assert_eq!(output.code, 2, "{option} {file}: {}", output.transcript());
            assert!(output.stderr.contains("hint: "), "{}", output.stderr);
        }
        let report = dir.run(&["report", option, journal.to_str().unwrap()]);
        assert_eq!(report.code, 2, "{}", report.transcript());
        assert!(report.stderr.contains("is part of a run"), "{}", report.stderr);
    }
    assert_eq!(std::fs::read(&journal).unwrap(), before);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("cases.jsonl")).unwrap(),
        "{\"id\": \"a\"}\n"
    );
}
