//! `--csv` and `--jsonl` with prompts and fields of cases, and checks of the output files.

use crate::services::Server;
use crate::support::TestDir;
use serde_json::{Value, json};

const KEY: &str = "sk-key-of-the-test-0123456789";

const SUITE: &str = r#"
[suite]
artifacts = "none"
[[target]]
name = "echo"
model = "sim/echo"
prompt = "Capital of {{ country }}?"
[[target]]
name = "chain"
chain = [
    { name = "draft", model = "sim/echo", prompt = "Draft {{ country }}" },
    { name = "final", model = "sim/echo", prompt = "Final {{ draft }}" },
]
[cases]
file = "cases.jsonl"
[[check]]
kind = "contains"
value = "{{ country }}"
"#;

const CASES: &str = "{\"id\": \"fr\", \"country\": \"France\", \"size\": 1.5, \"list\": [\"a\", null]}\n{\"id\": \"jp\", \"country\": \"Japan, \\\"Nippon\\\"\", \"note\": \"x\\ny\"}\n";

fn dir() -> TestDir {
    TestDir::with_suite(SUITE).write("cases.jsonl", CASES)
}

fn jsonl(dir: &TestDir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
    let mut rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["key"].to_string());
    rows
}

fn csv(dir: &TestDir, name: &str) -> Vec<Vec<String>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).from_path(dir.path().join(name)).unwrap();
    let mut rows: Vec<Vec<String>> =
        reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    rows[1..].sort();
    rows
}

#[test]
fn exports_have_prompts_and_fields_of_cases() {
    let dir = dir();
    let output = dir.run(&["run", "--csv", "run.csv", "--jsonl", "run.jsonl"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let rows = jsonl(&dir, "run.jsonl");
    let prompts: Vec<&Value> = rows.iter().map(|row| &row["prompt"]).collect();
    let japan = "Japan, \"Nippon\"";
    assert_eq!(
        prompts,
        [
            "Draft France",
            "Capital of France?",
            &format!("Draft {japan}"),
            &format!("Capital of {japan}?"),
        ]
    );
    assert_eq!(
        rows[0]["case"],
        json!({"id": "fr", "country": "France", "size": 1.5, "list": ["a", null]})
    );
    let rows = csv(&dir, "run.csv");
    let columns: Vec<usize> = ["prompt", "case.country", "case.size", "case.list", "case.note"]
        .iter()
        .map(|name| rows[0].iter().position(|column| column == name).unwrap())
        .collect();
    let cells = |row: &[String]| columns.iter().map(|at| row[*at].clone()).collect::<Vec<_>>();
    assert_eq!(cells(&rows[1]), ["Draft France", "France", "1.5", "[\"a\",null]", ""]);
    assert_eq!(cells(&rows[4]), [&format!("Capital of {japan}?"), japan, "", "", "x\ny"]);
    // The run has everything that later exports need.
    std::fs::remove_file(dir.path().join("bakeoff.toml")).unwrap();
    std::fs::remove_file(dir.path().join("cases.jsonl")).unwrap();
    let report = dir.run(&["report", "--csv", "report.csv", "--jsonl", "report.jsonl"]);
    assert_eq!(report.code, 0, "{}", report.transcript());
    assert_eq!(jsonl(&dir, "report.jsonl"), jsonl(&dir, "run.jsonl"));
    assert_eq!(csv(&dir, "report.csv"), csv(&dir, "run.csv"));
}

#[test]
fn rescored_run_keeps_the_prompts_and_fields_of_its_outputs() {
    let dir = dir();
    assert_eq!(dir.run(&["run"]).code, 0);
    let dir = dir
        .write("bakeoff.toml", SUITE.replace("Capital of", "Changed"))
        .write("cases.jsonl", CASES.replace("France", "France!"));
    let output = dir.run(&["score", "--no-fail", "--jsonl", "score.jsonl"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let rows = jsonl(&dir, "score.jsonl");
    assert_eq!(rows[1]["prompt"], "Capital of France?");
    assert_eq!(rows[1]["case"]["country"], "France");
    assert_eq!(rows[1]["status"], "failed", "checks use the new field");
}

#[test]
fn run_without_stored_cases_is_exported_with_a_warning() {
    let dir = dir();
    assert_eq!(dir.run(&["run"]).code, 0);
    std::fs::remove_file(dir.run_folder().join("cases.jsonl")).unwrap();
    let output = dir.run(&["report", "--jsonl", "out.jsonl", "--csv", "out.csv"]);
    let warning =
        "warning: the run has no file `cases.jsonl`; prompts and fields of cases are missing";
    assert!(output.stderr.contains(warning), "{}", output.transcript());
    let rows = jsonl(&dir, "out.jsonl");
    assert_eq!((&rows[0]["prompt"], &rows[0]["case"]), (&Value::Null, &Value::Null));
    assert_eq!(csv(&dir, "out.csv").len(), 5);
}

#[test]
fn damaged_lines_of_stored_cases_are_skipped() {
    let dir = dir();
    assert_eq!(dir.run(&["run"]).code, 0);
    let path = dir.run_folder().join("cases.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen('{', "\u{fffd}", 1)).unwrap();
    assert_eq!(dir.run(&["report", "--jsonl", "out.jsonl"]).code, 0);
    let prompts: Vec<Value> =
        jsonl(&dir, "out.jsonl").into_iter().map(|row| row["prompt"].clone()).collect();
    assert_eq!(prompts[..2], [Value::Null, Value::Null]);
    assert_eq!(prompts[2], "Draft Japan, \"Nippon\"");
}

#[test]
fn stored_cases_are_complete_after_an_extension_and_have_no_keys() {
    let secret = CASES.replace("x\\ny", KEY);
    let dir = dir().write(".env", format!("MY_KEY={KEY}\n")).write("cases.jsonl", secret);
    assert_eq!(dir.run(&["run", "--limit", "1"]).code, 0);
    let extended = dir.run(&["run", "--resume", "last", "--extend", "--limit", "2"]);
    assert_eq!(extended.code, 0, "{}", extended.transcript());
    assert_eq!(dir.run(&["report", "--jsonl", "out.jsonl"]).code, 0);
    let rows = jsonl(&dir, "out.jsonl");
    assert_eq!(rows[2]["case"]["note"], "[redacted]");
}

#[test]
fn output_files_are_checked_before_the_first_call() {
    let server = Server::start(|_, _| (500, "", String::new()));
    let model = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        server.origin()
    );
    let suite = model + &SUITE.replace("model = \"sim/echo\"\nprompt", "model = \"m\"\nprompt");
    let dir = TestDir::with_suite(&suite).write("cases.jsonl", CASES).with("folder/file", "");
    let mut rejected = String::new();
    for words in [
        &["--junit", "no/such/folder.xml"][..],
        &["--markdown", "folder"],
        &["--csv", "folder/file/out.csv"],
        &["--jsonl", "bakeoff.toml"],
        &["--csv", "same", "--jsonl", "same"],
    ] {
        let output = dir.run(&[&["run", "--target", "echo"][..], words].concat());
        assert_eq!(output.code, 2, "{}", output.transcript());
        rejected.push_str(&output.stderr);
    }
    insta::assert_snapshot!(rejected, @r"
    error: no folder no/such
      hint: `--junit` needs the path of a file in a writable folder
    error: folder is a folder
      hint: `--markdown` needs the path of a file in a writable folder
    error: no folder folder/file
      hint: `--csv` needs the path of a file in a writable folder
    error: bakeoff.toml is a file that this command reads
      hint: `--jsonl` needs the path of a file in a writable folder
    error: --csv and --jsonl have the same file same
      hint: use another file
    ");
    assert!(server.requests().is_empty());
    assert!(!dir.path().join("runs").exists());
    assert_eq!(std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap(), suite);
    let names = std::fs::read_dir(dir.path()).unwrap();
    assert!(names.flatten().all(|entry| entry.file_name() != "same"), "the probe is removed");
}
