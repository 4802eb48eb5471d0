//! Invalid suites: all problems are reported at once, before any call.

use crate::support::TestDir;

pub(crate) const CASES: &str =
    "{\"id\": \"fr\", \"country\": \"France\", \"expected\": \"Paris\"}\n";

pub(crate) const GOOD_END: &str = r#"
[cases]
file = "cases.jsonl"
[[check]]
kind = "contains"
value = "{{ expected }}"
"#;

/// Returns the rendered problems of a suite.
pub(crate) fn render(suite: &str) -> String {
    let dir = TestDir::with_suite(suite).write("cases.jsonl", CASES);
    let checked = dir.run(&["check"]);
    let output = dir.run(&["run"]);
    assert_eq!((checked.code, output.code), (2, 2), "{}", output.transcript());
    assert_eq!(checked.stderr, output.stderr);
    assert_eq!(output.stdout, "");
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

/// Returns the rendered problems of a suite that needs this variable only for calls.
pub(crate) fn render_missing(suite: &str, variable: &str) -> String {
    let dir = TestDir::with_suite(suite).write("cases.jsonl", CASES);
    let checked = dir.run(&["check"]);
    let warning = format!("warning: environment variable {variable} is not set; calls need it\n");
    assert_eq!((checked.code, checked.stderr.as_str()), (0, warning.as_str()));
    let output = dir.run(&["run"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

pub(crate) fn target(lines: &str) -> String {
    format!(
        "[[target]]\nname = \"one\"\nprompt = \"Capital of {{{{ country }}}}?\"\n{lines}\n{GOOD_END}"
    )
}

#[test]
fn unknown_keys_get_a_suggestion() {
    insta::assert_snapshot!(render(&format!("[suite]\ntrails = 3\n{}", target("model = \"sim/echo\"\ntemprature = 1"))), @r#"
    error: unknown key `trails` in [suite]
     --> bakeoff.toml:2:1
      |
    2 | trails = 3
      | ^^^^^^
      |
      = help: did you mean `trials`?
    error: unknown key `temprature` in [[target]]
     --> bakeoff.toml:7:1
      |
    7 | temprature = 1
      | ^^^^^^^^^^
      |
      = help: did you mean `temperature`?
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn wrong_types_and_ranges_are_rejected() {
    insta::assert_snapshot!(render(&format!("[suite]\ntrials = \"three\"\nthreshold = 1.5\nparallel = 0\nartifacts = \"some\"\n{}", target("model = 7"))), @r#"
    error[EVAL_INVALID_TRIALS_CONFIG]: `trials` must be an integer from 1 to 1000, not the string "three"
     --> bakeoff.toml:2:10
      |
    2 | trials = "three"
      |          ^^^^^^^
      |
      = help: `trials`: number of trials of each target on each case [default: 1]
    error[EVAL_INVALID_THRESHOLD]: `threshold` must be a number from 0 to 1, not 1.5
     --> bakeoff.toml:3:13
      |
    3 | threshold = 1.5
      |             ^^^
      |
      = help: `threshold`: share of a case's trials that must pass [default: 1]
    error: `parallel` must be an integer from 1 to 1000000, not 0
     --> bakeoff.toml:4:12
      |
    4 | parallel = 0
      |            ^
      |
      = help: `parallel`: maximum number of concurrent trials over all targets [default: limits of the models; number of cores for programs]
    error: `artifacts` cannot be "some"
     --> bakeoff.toml:5:13
      |
    5 | artifacts = "some"
      |             ^^^^^^
      |
      = help: expected one of: `all`, `failures`, `none`
    error: `model` must be a string, not 7
     --> bakeoff.toml:9:9
      |
    9 | model = 7
      |         ^
      |
      = help: `model`: model: a name under [models] or [sim], provider/model, or role/name; with `agent`, a model name of that agent
    error: 5 problems; nothing was called
    "#);
}

#[test]
fn all_problems_are_reported_at_once() {
    insta::assert_snapshot!(render(
        r#"
[suite]
trials = 0
[[target]]
name = "one"
model = "opnai/gpt"
prompt = "{{ contry }}"
[[target]]
name = "one"
prompt = "{{ country"
[cases]
file = "gone.jsonl"
[[check]]
kind = "contain"
value = "x"
[[check]]
kind = "regex"
value = "("
"#
    ), @r#"
    error[EVAL_INVALID_TRIALS_CONFIG]: `trials` must be an integer from 1 to 1000, not 0
     --> bakeoff.toml:3:10
      |
    3 | trials = 0
      |          ^
      |
      = help: `trials`: number of trials of each target on each case [default: 1]
    error: unknown provider `opnai`
     --> bakeoff.toml:6:9
      |
    6 | model = "opnai/gpt"
      |         ^^^^^^^^^^^
      |
      = help: did you mean `openai`?
    error: the target has none of `model`, `chain`, `command`, `agent` and `url`
     --> bakeoff.toml:8:1
      |
    8 | [[target]]
      | ^^^^^^^^^^
      |
      = help: write `model = "sim/echo"` or `command = ["python3", "agent.py"]`
    error: duplicate target name `one`
     --> bakeoff.toml:9:8
      |
    9 | name = "one"
      |        ^^^^^
      |
      = help: target names must be unique
    error: not a template: syntax error: unexpected end of input, expected end of variable block, near `country`
      --> bakeoff.toml:10:10
       |
    10 | prompt = "{{ country"
       |          ^^^^^^^^^^^^
       |
       = help: write case fields as {{ name }}
    error: gone.jsonl: cannot read the cases: No such file or directory (os error 2)
      --> bakeoff.toml:12:8
       |
    12 | file = "gone.jsonl"
       |        ^^^^^^^^^^^^
       |
       = help: `file` is relative to the suite file
    error: unknown check kind `contain`
      --> bakeoff.toml:14:8
       |
    14 | kind = "contain"
       |        ^^^^^^^^^
       |
       = help: did you mean `contains`?
    error: not a regular expression: regex parse error:
               (
               ^
           error: unclosed group
      --> bakeoff.toml:18:9
       |
    18 | value = "("
       |         ^^^
    error: 8 problems; nothing was called
    "#);
}

#[test]
fn invalid_toml_is_rejected() {
    insta::assert_snapshot!(render("[suite\nname = \"x\"\n[[target]]\nname = \n"), @r#"
    error: not TOML: unclosed table, expected `]`
     --> bakeoff.toml:1:7
      |
    1 | [suite
      |       ^
    error: not TOML: string values must be quoted, expected literal string
     --> bakeoff.toml:4:8
      |
    4 | name = 
      |        ^
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn missing_api_key_names_the_variable() {
    insta::assert_snapshot!(render_missing(&target("model = \"anthropic/claude-haiku-4-5\""), "ANTHROPIC_API_KEY"), @r#"
    error: environment variable ANTHROPIC_API_KEY is not set
     --> bakeoff.toml:4:9
      |
    4 | model = "anthropic/claude-haiku-4-5"
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `export ANTHROPIC_API_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn missing_api_key_of_a_defined_model_names_the_variable() {
    insta::assert_snapshot!(render_missing(&format!(
        "[models.small]\nprovider = \"openai\"\nmodel = \"gpt-4o-mini\"\napi_key_env = \"MY_KEY\"\n{}",
        target("model = \"small\"")
    ), "MY_KEY"), @r#"
    error: environment variable MY_KEY is not set
     --> bakeoff.toml:4:15
      |
    4 | api_key_env = "MY_KEY"
      |               ^^^^^^^^
      |
      = help: `export MY_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn unknown_model_is_rejected() {
    insta::assert_snapshot!(render(&format!(
        "[models.small]\nprovider = \"sim\"\nmodel = \"echo\"\n{}",
        target("model = \"smal\"")
    )), @r#"
    error: there is no model `smal`
     --> bakeoff.toml:7:9
      |
    7 | model = "smal"
      |         ^^^^^^
      |
      = help: did you mean `small`?
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn template_field_missing_in_all_cases_is_rejected() {
    insta::assert_snapshot!(render(&target("model = \"sim/echo\"\nsystem = \"Speak {{ langauge }}.\"")), @r#"
    error: no case has the field `langauge`
     --> bakeoff.toml:5:10
      |
    5 | system = "Speak {{ langauge }}."
      |          ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: expected one of: `country`, `expected`, `id`
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn target_without_model_or_command_is_rejected() {
    insta::assert_snapshot!(render(&target("")), @r#"
    error: the target has none of `model`, `chain`, `command`, `agent` and `url`
     --> bakeoff.toml:1:1
      |
    1 | [[target]]
      | ^^^^^^^^^^
      |
      = help: write `model = "sim/echo"` or `command = ["python3", "agent.py"]`
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn model_without_checks_is_rejected() {
    insta::assert_snapshot!(render("[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"{{ country }}\"\n[cases]\nfile = \"cases.jsonl\"\n"), @r#"
    error: no check applies to target `one`
     --> bakeoff.toml:1:1
      |
    1 | [[target]]
      | ^^^^^^^^^^
      |
      = help: add a [[check]] such as `kind = "contains"`, `value = "{{ expected }}"`
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn exit_code_check_of_a_model_is_rejected() {
    insta::assert_snapshot!(render(&format!("{}[[check]]\nkind = \"exit_code\"\n", target("model = \"sim/echo\""))), @r#"
    error: `exit_code` is for programs; `one` is a model
      --> bakeoff.toml:12:8
       |
    12 | kind = "exit_code"
       |        ^^^^^^^^^^^
       |
       = help: limit the check with `targets = ["…"]`
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn model_settings_of_a_program_are_rejected() {
    insta::assert_snapshot!(render(&target("command = [\"true\"]\nsystem = \"x\"")), @r#"
    error: `system` is for models; this target is a program
     --> bakeoff.toml:5:10
      |
    5 | system = "x"
      |          ^^^
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn invalid_addresses_and_prices_are_rejected() {
    insta::assert_snapshot!(render(&format!(
        "[models.a]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"localhost:8080\"\nprices = {{ input = 1.0000000001, output = 1 }}\n{}",
        target("model = \"a\"")
    )), @r#"
    error: invalid base_url `localhost:8080`: must start with http:// or https://
     --> bakeoff.toml:4:12
      |
    4 | base_url = "localhost:8080"
      |            ^^^^^^^^^^^^^^^^
      |
      = help: for example `base_url = "http://127.0.0.1:8080/v1"`
    error: `1.0000000001` is not an amount in dollars such as 0.15 (at most nine decimals)
     --> bakeoff.toml:5:20
      |
    5 | prices = { input = 1.0000000001, output = 1 }
      |                    ^^^^^^^^^^^^
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn empty_case_file_is_rejected() {
    let dir = TestDir::with_suite(&target("model = \"sim/echo\"")).write("cases.jsonl", "\n\n");
    insta::assert_snapshot!(dir.run(&["check"]).stderr, @r#"
    error: no cases
     --> bakeoff.toml:7:8
      |
    7 | file = "cases.jsonl"
      |        ^^^^^^^^^^^^^
      |
      = help: add at least one case
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn invalid_cases_are_reported_by_line() {
    let cases = "{\"id\": \"a\", \"country\": \"x\", \"expected\": \"y\"}\n{\"id\": \"a\", \"country\": \"z\"}\nnot json\n[]\n";
    let dir = TestDir::with_suite(&target("model = \"sim/echo\"")).write("cases.jsonl", cases);
    let output = dir.run(&["check"]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!(output.stderr, @r#"
    error: duplicate case id `a`
     --> cases.jsonl:2:1
      |
    2 | {"id": "a", "country": "z"}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: case 1 has the same id; ids must be unique
    error: not JSON: expected ident
     --> cases.jsonl:3:2
      |
    3 | not json
      |  ^^^^^^^
    error: a case must be a JSON object
     --> cases.jsonl:4:1
      |
    4 | []
      | ^^
    error: 3 problems; nothing was called
    "#);
}

#[test]
fn devices_and_pipes_are_rejected_as_case_files() {
    let dir =
        TestDir::with_suite(&target("model = \"sim/echo\"").replace("cases.jsonl", "/dev/zero"));
    let checked = dir.run(&["check"]);
    assert_eq!(checked.code, 2);
    assert!(checked.stderr.contains("not a regular file"), "{}", checked.stderr);
    assert_eq!(dir.run(&["check", "/dev/zero"]).code, 2);
}

#[test]
fn missing_suite_hints_at_init() {
    let output = TestDir::new().run(&["run"]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!(output.stderr, @r#"
    error: cannot read the suite: No such file or directory (os error 2)
    --> bakeoff.toml
     = help: create one with `bakeoff init`
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn invalid_utf8_is_rejected() {
    let output = TestDir::new().write("bakeoff.toml", b"[suite]\nname = \"\xff\"\n").run(&["run"]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!(output.stderr, @r#"
    error: not UTF-8
    --> bakeoff.toml:2:9
     = help: save the file as UTF-8
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn unknown_provider_lists_the_providers() {
    let suite = "[[target]]\nname = \"t\"\nmodel = \"nope/m\"\nprompt = \"p\"\n[[cases.inline]]\nid = \"a\"\n\
                 [[check]]\nkind = \"contains\"\nvalue = \"x\"\n";
    let error = render(suite);
    assert!(error.contains("= help: known providers: anthropic, azure, "), "{error}");
}

#[test]
fn empty_suite_is_rejected() {
    insta::assert_snapshot!(render(""), @r#"
    error: the suite has no `cases`
    --> bakeoff.toml:1:1
     = help: add `cases`: inputs of the targets
    error: the suite has no `target`
    --> bakeoff.toml:1:1
     = help: add [[target]] tables, or a [matrix] of prompts and models
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn missing_programs_are_rejected() {
    insta::assert_snapshot!(render(&target("command = [\"no-such-program\", \"x\"]")), @r#"
    error: cannot run `no-such-program`: program not found
     --> bakeoff.toml:4:12
      |
    4 | command = ["no-such-program", "x"]
      |            ^^^^^^^^^^^^^^^^^
      |
      = help: use a program on the PATH, or an executable file next to the suite file
    error: 1 problem; nothing was called
    "#);
    let dir =
        TestDir::with_suite(&target("command = [\"./cases.jsonl\"]")).write("cases.jsonl", CASES);
    assert!(dir.run(&["check"]).stderr.contains("not executable"));
}

#[test]
fn template_that_fails_for_every_case_is_rejected() {
    insta::assert_snapshot!(render(&target("model = \"sim/echo\"\nsystem = \"{{ country | nofilter }} {{ 1 / 0 }}\"")), @r#"
    error: cannot render the template: unknown filter: filter nofilter is unknown
     --> bakeoff.toml:5:10
      |
    5 | system = "{{ country | nofilter }} {{ 1 / 0 }}"
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn missing_variables_in_headers_are_rejected() {
    insta::assert_snapshot!(render_missing(&format!(
        "[models.a]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:1/v1\"\nheaders = {{ authorization = \"Bearer $TOKEN\" }}\n{}",
        target("model = \"a\"")
    ), "TOKEN"), @r#"
    error: environment variable TOKEN is not set
     --> bakeoff.toml:5:11
      |
    5 | headers = { authorization = "Bearer $TOKEN" }
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `export TOKEN=…`, or set it in the file `.env` next to the suite; write `$$` for a literal dollar sign
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn many_problems_of_a_file_are_counted_and_few_printed() {
    let cases = "{\"id\": \"a\", \"country\": \"x\", \"expected\": \"y\"}\n".repeat(20_000);
    let dir = TestDir::with_suite(&target("model = \"sim/echo\"")).write("cases.jsonl", cases);
    let output = dir.run(&["check"]);
    assert_eq!((output.code, output.stderr.matches("duplicate case id").count()), (2, 20));
    assert!(output.stderr.contains("and 19979 more problems in this file"), "{}", output.stderr);
}

#[test]
fn problems_in_json_and_toml_cases_have_positions() {
    for (name, cases, position) in [
        ("cases.json", "[\n  {\"country\": 1, \"expected\": 2},\n  [3]\n]", "cases.json:3:3"),
        ("cases.json", "[\n{\"id\": \"a\"},\n{\"id\": \"a\"}\n]", "cases.json:3:1"),
        ("cases.toml", "\n[case]\nid = \"a\"\n", "cases.toml:2:1"),
        ("cases.toml", "case = \"x\"\n", "cases.toml:1:8"),
        ("cases.jsonl", "\n   {\"id\": \"a\",}\n", "cases.jsonl:2:15"),
    ] {
        let suite = target("model = \"sim/echo\"").replace("cases.jsonl", name);
        let output = TestDir::with_suite(&suite).write(name, cases).run(&["check"]);
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(position), "{position}:\n{}", output.stderr);
    }
}

/// Every file in `tests/bad` is an invalid suite; its messages are in the snapshot beside it.
#[test]
fn every_invalid_suite_is_rejected_with_its_message() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 40, "{} files", names.len());
    for name in names {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let dir = TestDir::with_suite(&text);
        let checked = dir.run(&["check"]);
        assert_eq!(checked.code, 2, "{name}: {}", checked.transcript());
        let run = dir.run(&["run"]);
        assert_eq!((run.code, &run.stderr), (2, &checked.stderr), "{name}");
        assert!(!dir.path().join("runs").exists(), "{name}: no run exists");
        insta::with_settings!({
            snapshot_path => "../bad", prepend_module_to_snapshot => false, omit_expression => true
        }, {
            insta::assert_snapshot!(name, checked.stderr);
        });
    }
}

#[test]
fn unclosed_quote_in_a_csv_file_is_an_error() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"t\"\nmodel = \"sim/echo\"\nprompt = \"{{ q }}\"\n[cases]\nfile = \"cases.csv\"\n[[check]]\nkind = \"contains\"\nvalue = \"{{ q }}\"\n",
    )
    .write("cases.csv", "id,q\na,one\nb,\"two\nc,three\nd,four\n");
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 2, "{}", run.transcript());
    assert!(run.stderr.contains("unclosed quote"), "{}", run.stderr);
    assert!(run.stderr.contains("cases.csv:3"), "{}", run.stderr);
}
