//! Invalid targets: kinds, roles, programs and services.

use crate::bad_suites::{CASES, render, render_missing, target};
use crate::support::TestDir;

#[test]
fn role_with_candidates_only_passes_check_but_not_run() {
    let suite =
        target("model = \"role/solver\"\n[select.roles]\nsolver = [\"sim/echo\", \"sim/judge\"]");
    let dir = TestDir::with_suite(&suite).write("cases.jsonl", CASES);
    let checked = dir.run(&["check"]);
    assert_eq!(checked.code, 0, "{}", checked.transcript());
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(!dir.path().join("runs").exists());
    insta::assert_snapshot!(output.stderr, @r#"
    error: no model assigned to role `solver`
     --> bakeoff.toml:4:9
      |
    4 | model = "role/solver"
      |         ^^^^^^^^^^^^^
      |
      = help: write `solver = "provider/model"` under [roles], or let `bakeoff select` choose one
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn target_of_two_kinds_is_rejected() {
    insta::assert_snapshot!(render(&target("command = [\"true\"]\nmodel = \"sim/echo\"\nurl = \"http://127.0.0.1:9/\"")), @r#"
    error: a target cannot have both `command` and `url`
     --> bakeoff.toml:6:7
      |
    6 | url = "http://127.0.0.1:9/"
      |       ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: split it into two targets
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn keys_of_other_target_kinds_are_rejected() {
    let suite = target("command = [\"true\"]\nargs = [\"x\"]\nmethod = \"GET\"\nanswer = \"$\"");
    let model = "[[target]]\nname = \"two\"\nmodel = \"sim/echo\"\nprompt = \"x\"\nworkspace = \".\"\nprotocol = \"jsonl\"\ntimeout_seconds = 1\n";
    insta::assert_snapshot!(render(&format!("{model}{suite}")), @r#"
    error: `workspace` is for programs, agents and models with tools; this target is a model
     --> bakeoff.toml:5:13
      |
    5 | workspace = "."
      |             ^^^
    error: `protocol` is for programs; this target is a model
     --> bakeoff.toml:6:12
      |
    6 | protocol = "jsonl"
      |            ^^^^^^^
    error: `timeout_seconds` is for programs, agents, services and models with tools; this target is a model
     --> bakeoff.toml:7:19
      |
    7 | timeout_seconds = 1
      |                   ^
    error: `args` is for agents; this target is a program
      --> bakeoff.toml:12:8
       |
    12 | args = ["x"]
       |        ^^^^^
    error: `method` is for services; this target is a program
      --> bakeoff.toml:13:10
       |
    13 | method = "GET"
       |          ^^^^^
    error: `answer` is for services; this target is a program
      --> bakeoff.toml:14:10
       |
    14 | answer = "$"
       |          ^^^
    error: 6 problems; nothing was called
    "#);
}

#[test]
fn invalid_program_settings_are_rejected() {
    insta::assert_snapshot!(render(&target("command = [\"cat\", \"{prompt}\"]\nprotocol = \"jsonl\"\nworkspace = \"gone\"")), @r#"
    error: a program with `protocol = "jsonl"` serves all trials and cannot take the prompt as an argument
     --> bakeoff.toml:4:19
      |
    4 | command = ["cat", "{prompt}"]
      |                   ^^^^^^^^^^
    error: a program with `protocol = "jsonl"` serves all trials and cannot have a workspace
     --> bakeoff.toml:6:13
      |
    6 | workspace = "gone"
      |             ^^^^^^
    error: no such folder `gone`
     --> bakeoff.toml:6:13
      |
    6 | workspace = "gone"
      |             ^^^^^^
      |
      = help: `workspace` is relative to the suite file
    error: 3 problems; nothing was called
    "#);
    insta::assert_snapshot!(render(&target("command = [\"cat\"]\nprotocol = \"json\"\ntimeout_seconds = 0\nworkspace = 7")), @r#"
    error: `protocol` cannot be "json"
     --> bakeoff.toml:5:12
      |
    5 | protocol = "json"
      |            ^^^^^^
      |
      = help: did you mean `jsonl`?
    error: `timeout_seconds` must be a number from 0.001 to 1000000000, not 0
     --> bakeoff.toml:6:19
      |
    6 | timeout_seconds = 0
      |                   ^
      |
      = help: `timeout_seconds`: time limit in seconds of a program, agent, service or model with tools [default: `timeout_seconds` of the suite]
    error: `workspace` must be a string, not 7
     --> bakeoff.toml:7:13
      |
    7 | workspace = 7
      |             ^
      |
      = help: `workspace`: for programs, agents and models with tools: folder, relative to the suite file, that is copied for each trial [default: an empty folder]
    error: 3 problems; nothing was called
    "#);
}

#[test]
fn unknown_agents_are_rejected() {
    insta::assert_snapshot!(render(&target("agent = \"cloude\"")), @r#"
    error: `agent` cannot be "cloude"
     --> bakeoff.toml:4:9
      |
    4 | agent = "cloude"
      |         ^^^^^^^^
      |
      = help: did you mean `claude`?
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn missing_workspaces_of_cases_are_rejected() {
    let suite = "[[target]]\nname = \"one\"\ncommand = [\"true\"]\nprompt = \"\"\n[cases]\nfile = \"cases.jsonl\"\n";
    let cases = "{\"id\": \"a\", \"workspace\": \"gone\"}\n{\"id\": \"b\", \"workspace\": \"../x\"}\n{\"id\": \"c\", \"workspace\": 7}\n{\"id\": \"d\", \"workspace_subdir\": \"/etc\"}\n{\"id\": \"e\"}\n";
    let dir = TestDir::with_suite(suite).write("cases.jsonl", cases);
    let output = dir.run(&["check"]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!(output.stderr, @r#"
    error: workspace of case `a` not found: gone
    --> cases.jsonl
     = help: `workspace` and `workspace_subdir` are relative to the suite file
    error: case `workspace` must stay within the folder of the suite: "../x" (case `b`)
    --> cases.jsonl
     = help: `workspace` and `workspace_subdir` are relative to the suite file
    error: case `workspace` must be a string (case `c`)
    --> cases.jsonl
     = help: `workspace` and `workspace_subdir` are relative to the suite file
    error: case `workspace_subdir` must stay within the folder of the suite: "/etc" (case `d`)
    --> cases.jsonl
     = help: `workspace` and `workspace_subdir` are relative to the suite file
    error: 4 problems; nothing was called
    "#);
}

#[test]
fn invalid_service_settings_are_rejected() {
    insta::assert_snapshot!(render(&target("url = \"localhost:80\"\nmethod = \"post\"\nbody = 7\nanswer = \"choices\"\nusage = { input_tokens = \"$[\", tokens = \"$\" }\nconnections = 0")), @r#"
    error: invalid url `localhost:80`: must start with http:// or https://
     --> bakeoff.toml:4:7
      |
    4 | url = "localhost:80"
      |       ^^^^^^^^^^^^^^
      |
      = help: for example `url = "http://127.0.0.1:8080/v1"`
    error: `method` cannot be "post"
     --> bakeoff.toml:5:10
      |
    5 | method = "post"
      |          ^^^^^^
      |
      = help: expected one of: `POST`, `GET`, `PUT`, `PATCH`, `DELETE`
    error: `body` must be a string or a table, not 7
     --> bakeoff.toml:6:8
      |
    6 | body = 7
      |        ^
      |
      = help: `body`: for services: JSON template of the request body, or a table with template strings [default: { prompt = "{{ prompt }}" }]
    error: not a JSONPath: at position 0, parser error
     --> bakeoff.toml:7:10
      |
    7 | answer = "choices"
      |          ^^^^^^^^^
      |
      = help: for example `$.choices[0].text`; `$` is the whole response
    error: not a JSONPath: at position 1, parser error
     --> bakeoff.toml:8:26
      |
    8 | usage = { input_tokens = "$[", tokens = "$" }
      |                          ^^^^
      |
      = help: for example `$.choices[0].text`; `$` is the whole response
    error: unknown key `tokens` in [usage]
     --> bakeoff.toml:8:32
      |
    8 | usage = { input_tokens = "$[", tokens = "$" }
      |                                ^^^^^^
      |
      = help: expected one of: `input_tokens`, `output_tokens`, `cost_usd`
    error: `connections` must be an integer from 1 to 100000, not 0
     --> bakeoff.toml:9:15
      |
    9 | connections = 0
      |               ^
      |
      = help: `connections`: for services: maximum number of requests in flight [default: 10]
    error: 7 problems; nothing was called
    "#);
    insta::assert_snapshot!(render_missing(&target("url = \"http://127.0.0.1:9/\"\nheaders = { authorization = \"Bearer $TOKEN\" }"), "TOKEN"), @r#"
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
fn invalid_service_bodies_are_rejected() {
    let with =
        |body: &str| render(&target(&format!("url = \"http://127.0.0.1:9/\"\nbody = {body}")));
    let bodies = [
        "'{\"q\": {{ prompt }}}'",
        "'{\"q\": \"{{ promt }}\"}'",
        "{ q = { deep = [\"{{ contry }}\", \"{{ prompt\"] } }",
    ];
    insta::assert_snapshot!(bodies.map(with).join("\n"), @r#"
    error: the body is not JSON: expected value at line 1 column 7
     --> bakeoff.toml:5:8
      |
    5 | body = '{"q": {{ prompt }}}'
      |        ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: put strings in quotation marks, as in `{"question": "{{ prompt }}"}`, but no other values
    error: 1 problem; nothing was called

    error: no case has the field `promt`
     --> bakeoff.toml:5:8
      |
    5 | body = '{"q": "{{ promt }}"}'
      |        ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `prompt`?
    error: 1 problem; nothing was called

    error: not a template: syntax error: unexpected end of input, expected end of variable block, near `prompt`
     --> bakeoff.toml:5:8
      |
    5 | body = { q = { deep = ["{{ contry }}", "{{ prompt"] } }
      |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write case fields as {{ name }}
    error: 1 problem; nothing was called
    "#);
    insta::assert_snapshot!(render(&target("url = \"http://127.0.0.1:9/\"\nmethod = \"GET\"\nbody = {}")), @r#"
    error: a GET request has no body
     --> bakeoff.toml:6:8
      |
    6 | body = {}
      |        ^^
    error: 1 problem; nothing was called
    "#);
}

#[test]
fn service_without_checks_is_rejected() {
    insta::assert_snapshot!(render("[[target]]\nname = \"one\"\nurl = \"http://127.0.0.1:9/\"\nprompt = \"{{ country }}\"\n[cases]\nfile = \"cases.jsonl\"\n"), @r#"
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
