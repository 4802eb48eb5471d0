//! Invalid checks: all problems are reported before any call.

use crate::support::TestDir;

/// Suite with one model and a case file.
const MODEL: &str = r#"[[target]]
name = "one"
model = "sim/echo"
prompt = "{{ country }}"
[cases]
file = "cases.jsonl"
"#;

const CASES: &str = r#"{"id": "fr", "country": "France", "expected": "Paris", "tags": ["europe"]}
"#;

/// Returns the rendered problems of a suite.
fn render(suite: &str, files: &[(&str, &str)]) -> String {
    let mut dir = TestDir::with_suite(suite).write("cases.jsonl", CASES);
    for (name, text) in files {
        dir = dir.write(name, text);
    }
    let checked = dir.run(&["check"]);
    let output = dir.run(&["run"]);
    assert_eq!((checked.code, output.code), (2, 2), "{}", output.transcript());
    assert_eq!(checked.stderr, output.stderr);
    assert!(!dir.path().join("runs").exists());
    output.stderr
}

#[test]
fn invalid_texts_and_bounds_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "contains"
value = ""
[[check]]
kind = "contains_any"
values = []
[[check]]
kind = "length"
[[check]]
kind = "word_count"
min = 3
max = 2
[[check]]
kind = "similarity"
value = "x"
metric = "rouge"
min = 2
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: the value is empty
     --> bakeoff.toml:9:9
      |
    9 | value = ""
      |         ^^
    error: `values` must be a non-empty list of strings, not an empty list
      --> bakeoff.toml:12:10
       |
    12 | values = []
       |          ^^
       |
       = help: `values`: texts of which one must occur.
    error: the check needs `min` or `max`
      --> bakeoff.toml:14:8
       |
    14 | kind = "length"
       |        ^^^^^^^^
    error: `min` (3) is greater than `max` (2)
      --> bakeoff.toml:17:7
       |
    17 | min = 3
       |       ^
    error: `metric` cannot be "rouge"
      --> bakeoff.toml:22:10
       |
    22 | metric = "rouge"
       |          ^^^^^^^
       |
       = help: did you mean `rouge_l`?
    error: `min` must be a number from 0 to 1, not 2
      --> bakeoff.toml:23:7
       |
    23 | min = 2
       |       ^
       |
       = help: `min`: minimum similarity; alias of `min_score`.
    error: 6 problems; nothing was called
    "#);
}

#[test]
fn unknown_and_missing_keys_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "contains_all"
value = "x"
[[check]]
kind = "levenshtein"
value = 7
max = "1"
[[check]]
kind = "is_json"
extract = "yaml"
[[check]]
kind = "is_json"
language = "json"
[[check]]
value = "x"
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: the check `contains_all` has no `values`
     --> bakeoff.toml:7:1
      |
    7 | [[check]]
      | ^^^^^^^^^
      |
      = help: add `values`: texts that must all occur.
    error: unknown key `value` in the check `contains_all`
     --> bakeoff.toml:9:1
      |
    9 | value = "x"
      | ^^^^^
      |
      = help: did you mean `values`?
    error: `value` must be a string, not 7
      --> bakeoff.toml:12:9
       |
    12 | value = 7
       |         ^
       |
       = help: `value`: the expected output.
    error: `max` must be an integer from 0 to 100000, not the string "1"
      --> bakeoff.toml:13:7
       |
    13 | max = "1"
       |       ^^^
       |
       = help: `max`: maximum number of edits.
    error: `extract` cannot be "yaml"
      --> bakeoff.toml:16:11
       |
    16 | extract = "yaml"
       |           ^^^^^^
       |
       = help: expected one of: `code_block`, `json`
    error: `language` is for `extract = "code_block"`
      --> bakeoff.toml:19:12
       |
    19 | language = "json"
       |            ^^^^^^
    error: [[check]] has no `kind`
      --> bakeoff.toml:20:1
       |
    20 | [[check]]
       | ^^^^^^^^^
       |
       = help: add `kind`: check kind
    error: 7 problems; nothing was called
    "#);
}

#[test]
fn invalid_patterns_paths_and_schemas_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "json_path"
path = "cities"
[[check]]
kind = "json_path"
path = "$$"
equals = "{{ expected }}"
[[check]]
kind = "json_path"
path = "$"
matches = "("
[[check]]
kind = "json_path"
path = "$"
equals = 1
matches = "x"
[[check]]
kind = "json_schema"
schema = { type = "objekt" }
[[check]]
kind = "json_schema"
[[check]]
kind = "tool_called"
name = "x"
args_match = { city = "[" }
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: not a JSONPath: at position 0, parser error
     --> bakeoff.toml:9:8
      |
    9 | path = "cities"
      |        ^^^^^^^^
      |
      = help: for example `$.cities[0].name`; `$` is the whole output
    error: not a JSONPath: at position 1, parser error
      --> bakeoff.toml:12:8
       |
    12 | path = "$$"
       |        ^^^^
       |
       = help: for example `$.cities[0].name`; `$` is the whole output
    error: not a regular expression: regex parse error:
               (
               ^
           error: unclosed group
      --> bakeoff.toml:17:11
       |
    17 | matches = "("
       |           ^^^
    error: the check has either `equals` or `matches`, not both
      --> bakeoff.toml:22:11
       |
    22 | matches = "x"
       |           ^^^
    error: not a JSON Schema: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword
      --> bakeoff.toml:25:10
       |
    25 | schema = { type = "objekt" }
       |          ^^^^^^^^^^^^^^^^^^^
    error: the check needs `schema` or `file`
      --> bakeoff.toml:27:8
       |
    27 | kind = "json_schema"
       |        ^^^^^^^^^^^^^
    error: not a regular expression: regex parse error:
               [
               ^
           error: unclosed character class
      --> bakeoff.toml:31:14
       |
    31 | args_match = { city = "[" }
       |              ^^^^^^^^^^^^^^
    error: 7 problems; nothing was called
    "#);
}

#[test]
fn unreadable_schema_files_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "json_schema"
file = "gone.json"
[[check]]
kind = "contains_json"
file = "cases.jsonl"
schema = {}
[[check]]
kind = "json_schema"
file = "broken.json"
"#
    );
    insta::assert_snapshot!(render(suite, &[("broken.json", r#"{"#)]), @r#"
    error: gone.json: cannot read the schema: No such file or directory (os error 2)
     --> bakeoff.toml:9:8
      |
    9 | file = "gone.json"
      |        ^^^^^^^^^^^
      |
      = help: `file` is relative to the suite file
    error: the check has either `schema` or `file`, not both
      --> bakeoff.toml:12:8
       |
    12 | file = "cases.jsonl"
       |        ^^^^^^^^^^^^^
    error: broken.json: not JSON: EOF while parsing an object at line 1 column 1
      --> bakeoff.toml:16:8
       |
    16 | file = "broken.json"
       |        ^^^^^^^^^^^^^
    error: 3 problems; nothing was called
    "#);
}

#[test]
fn paths_outside_the_workspace_are_rejected() {
    let suite = r#"[[target]]
name = "one"
command = ["true"]
prompt = "{{ country }}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "file_exists"
path = "../secret"
[[check]]
kind = "file_contains"
path = "/etc/passwd"
value = "root"
"#;
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: `../secret` is not within the workspace: it contains `..`
     --> bakeoff.toml:9:8
      |
    9 | path = "../secret"
      |        ^^^^^^^^^^^
    error: `/etc/passwd` is not within the workspace: it starts with `/`
      --> bakeoff.toml:12:8
       |
    12 | path = "/etc/passwd"
       |        ^^^^^^^^^^^^^
    error: 2 problems; nothing was called
    "#);
}

#[test]
fn invalid_commands_and_limits_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "command_contains"
[[check]]
kind = "command_contains"
value = "a"
pattern = "b"
[[check]]
kind = "tokens"
[[check]]
kind = "latency"
max_ms = -1
[[check]]
kind = "file_exists"
path = "a"
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: the check needs `value` or `pattern`
     --> bakeoff.toml:8:8
      |
    8 | kind = "command_contains"
      |        ^^^^^^^^^^^^^^^^^^
    error: the check has either `value` or `pattern`, not both
      --> bakeoff.toml:12:11
       |
    12 | pattern = "b"
       |           ^^^
    error: the check needs `max`, `max_input` or `max_output`
      --> bakeoff.toml:14:8
       |
    14 | kind = "tokens"
       |        ^^^^^^^^
    error: `max_ms` must be an integer from 0 to 1000000000, not -1
      --> bakeoff.toml:17:10
       |
    17 | max_ms = -1
       |          ^^
       |
       = help: `max_ms`: milliseconds.
    error: `file_exists` is for programs and models with tools; `one` is a model
      --> bakeoff.toml:19:8
       |
    19 | kind = "file_exists"
       |        ^^^^^^^^^^^^^
       |
       = help: limit the check with `targets = ["…"]`
    error: 5 problems; nothing was called
    "#);
}

#[test]
fn invalid_judges_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "rubric"
model = "sim/judge"
[[check]]
kind = "rubric"
model = "smal"
criteria = ["It is short."]
[[check]]
kind = "rubric"
model = "sim/judge"
criteria = ["It is short."]
min = 3
[[check]]
kind = "rubric"
model = "openai/gpt-4o-mini"
score = "How short is it?"
min = 6
[[check]]
kind = "pairwise"
model = "anthropic/claude-haiku-4-5"
reference = "{{ expected }}"
[[check]]
kind = "pairwise"
model = "sim/judge"
reference = "x"
min = "wim"
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: the check needs `criteria` or `score`
     --> bakeoff.toml:8:8
      |
    8 | kind = "rubric"
      |        ^^^^^^^^
    error: there is no model `smal`
      --> bakeoff.toml:12:9
       |
    12 | model = "smal"
       |         ^^^^^^
       |
       = help: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    error: `min` is for `score`; all of `criteria` must be true
      --> bakeoff.toml:18:7
       |
    18 | min = 3
       |       ^
    error: `min` must be an integer from 1 to 5, not 6
      --> bakeoff.toml:23:7
       |
    23 | min = 6
       |       ^
       |
       = help: `min`: with `score`: the lowest score that passes [default: 4].
    error: environment variable ANTHROPIC_API_KEY is not set
      --> bakeoff.toml:26:9
       |
    26 | model = "anthropic/claude-haiku-4-5"
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: `export ANTHROPIC_API_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    error: `min` cannot be "wim"
      --> bakeoff.toml:32:7
       |
    32 | min = "wim"
       |       ^^^^^
       |
       = help: did you mean `win`?
    error: 6 problems; nothing was called
    "#);
}

#[test]
fn invalid_code_checks_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "program"
command = ["no-such-program"]
[[check]]
kind = "python"
[[check]]
kind = "python"
function = "check.py"
[[check]]
kind = "python"
function = "gone.py:right"
[[check]]
kind = "python"
function = "check.py:wrong"
[[check]]
kind = "python"
expression = "True"
function = "check.py:right"
"#
    );
    insta::assert_snapshot!(render(suite, &[("check.py", r#"def right(output):
    return True
"#)]), @r#"
    error: cannot run `no-such-program`: program not found
     --> bakeoff.toml:9:11
      |
    9 | command = ["no-such-program"]
      |           ^^^^^^^^^^^^^^^^^^^
      |
      = help: use a program on the PATH, or an executable file next to the suite file
    error: the check needs `expression` or `function`
      --> bakeoff.toml:11:8
       |
    11 | kind = "python"
       |        ^^^^^^^^
    error: `check.py` is not of the form `file.py:name`
      --> bakeoff.toml:14:12
       |
    14 | function = "check.py"
       |            ^^^^^^^^^^
    error: cannot read `gone.py`: No such file or directory (os error 2)
      --> bakeoff.toml:17:12
       |
    17 | function = "gone.py:right"
       |            ^^^^^^^^^^^^^^^
       |
       = help: the file of `function` is relative to the suite file
    error: `check.py` has no function `wrong`
      --> bakeoff.toml:20:12
       |
    20 | function = "check.py:wrong"
       |            ^^^^^^^^^^^^^^^^
       |
       = help: define it: `def wrong(output, case, attempt):`
    error: the check has either `expression` or `function`, not both
      --> bakeoff.toml:24:12
       |
    24 | function = "check.py:right"
       |            ^^^^^^^^^^^^^^^^
    error: 6 problems; nothing was called
    "#);
}

#[test]
fn unknown_ids_targets_and_tags_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
id = "a"
kind = "is_json"
[[check]]
id = "a"
kind = "is_xml"
[[check]]
kind = "is_json"
targets = ["two"]
[[check]]
kind = "is_json"
tags = ["asia"]
[[check]]
kind = "contains"
value = "{{ expected"
"#
    );
    insta::assert_snapshot!(render(suite, &[]), @r#"
    error: duplicate check id `a`
      --> bakeoff.toml:11:6
       |
    11 | id = "a"
       |      ^^^
    error: there is no target `two`
      --> bakeoff.toml:15:11
       |
    15 | targets = ["two"]
       |           ^^^^^^^
       |
       = help: expected one of: `one`
    error: no case has the tag `asia`
      --> bakeoff.toml:18:9
       |
    18 | tags = ["asia"]
       |         ^^^^^^
       |
       = help: expected one of: `europe`
    error: not a template: syntax error: unexpected end of input, expected end of variable block, near `expected`
      --> bakeoff.toml:21:9
       |
    21 | value = "{{ expected"
       |         ^^^^^^^^^^^^^
       |
       = help: write case fields as {{ name }}
    error: 4 problems; nothing was called
    "#);
}

#[test]
fn cases_without_a_check_due_to_tags_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
kind = "contains"
value = "x"
tags = ["europe"]
"#
    );
    insta::assert_snapshot!(render(suite, &[("cases.jsonl", r#"{"id": "fr", "country": "France", "expected": "Paris", "tags": ["europe"]}
{"id": "jp", "country": "Japan", "expected": "Tokyo"}
"#)]), @r#"
    error: no check applies to target `one` on case `jp`
     --> bakeoff.toml:1:1
      |
    1 | [[target]]
      | ^^^^^^^^^^
      |
      = help: add a [[check]] without `tags`, or `checks` to the case
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn invalid_checks_of_cases_are_rejected() {
    let suite = &format!(
        "{MODEL}{}",
        r#"[[check]]
id = "short"
kind = "length"
max = 9
"#
    );
    insta::assert_snapshot!(render(suite, &[("cases.jsonl", r#"{"id": "a", "country": "x", "checks": [{"kind": "contain", "value": "x"}]}
{"id": "b", "country": "x", "checks": [{"kind": "regex", "value": "("}, {"kind": "equals"}]}
{"id": "c", "country": "x", "checks": [{"kind": "is_json", "id": "short"}]}
{"id": "d", "country": "x", "checks": "none"}
{"id": "e", "country": "x", "checks": [{"kind": "contains", "value": "{{ gone }}"}]}
{"id": "f", "country": "x", "checks": [{"kind": "rubric", "model": "smal", "criteria": ["x"]}]}
{"id": "g", "country": "x", "checks": [{"kind": "exit_code"}]}
"#)]), @r#"
    error: unknown check kind `contain`
     --> cases.jsonl:1:1
      |
    1 | {"id": "a", "country": "x", "checks": [{"kind": "contain", "value": "x"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `contains`?
    error: check 1: not a regular expression: regex parse error:
               (
               ^
           error: unclosed group
     --> cases.jsonl:2:1
      |
    2 | {"id": "b", "country": "x", "checks": [{"kind": "regex", "value": "("}, {"kind": "equals"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: check 2: the check `equals` has no `value`
     --> cases.jsonl:2:1
      |
    2 | {"id": "b", "country": "x", "checks": [{"kind": "regex", "value": "("}, {"kind": "equals"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `value`: the expected output.
    error: duplicate check id `short`
     --> cases.jsonl:3:1
      |
    3 | {"id": "c", "country": "x", "checks": [{"kind": "is_json", "id": "short"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: case `checks` must be a list of tables such as {"kind": "contains", "value": "x"}
     --> cases.jsonl:4:1
      |
    4 | {"id": "d", "country": "x", "checks": "none"}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: check `contains`: undefined value: `gone` is undefined
     --> cases.jsonl:5:1
      |
    5 | {"id": "e", "country": "x", "checks": [{"kind": "contains", "value": "{{ gone }}"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    error: there is no model `smal`
     --> cases.jsonl:6:1
      |
    6 | {"id": "f", "country": "x", "checks": [{"kind": "rubric", "model": "smal", "criteria": ["x"]}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    error: `exit_code` is for programs; `one` is a model
     --> cases.jsonl:7:1
      |
    7 | {"id": "g", "country": "x", "checks": [{"kind": "exit_code"}]}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: limit the check with `targets = ["…"]`
    error: 8 problems; nothing was called
    "#);
}

#[test]
fn invalid_checks_of_inline_cases_are_rejected() {
    let suite = r#"[[target]]
name = "one"
model = "sim/echo"
prompt = "{{ country }}"
[[cases.inline]]
id = "a"
country = "x"
checks = [{ kind = "length", min = 3, max = 2 }]
"#;
    insta::assert_snapshot!(render(suite, &[]), @"
    error: `min` (3) is greater than `max` (2)
     --> bakeoff.toml:5:1
      |
    5 | [[cases.inline]]
      | ^^^^^^^^^^^^^^^^
    error: 1 problem; nothing was called
    ");
}

#[test]
fn cases_without_checks_among_checked_ones_are_rejected() {
    let suite = MODEL;
    insta::assert_snapshot!(render(suite, &[("cases.jsonl", r#"{"id": "a", "country": "x", "checks": [{"kind": "is_json"}]}
{"id": "b", "country": "x"}
"#)]), @r#"
    error: no check applies to target `one` on case `b`
     --> bakeoff.toml:1:1
      |
    1 | [[target]]
      | ^^^^^^^^^^
      |
      = help: add a [[check]] without `tags`, or `checks` to the case
    error: 1 problem; nothing was called
    "#);
}
