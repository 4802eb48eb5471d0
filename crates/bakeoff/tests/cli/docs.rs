//! The documentation: its suites, commands and outputs work as printed.

use crate::services::Server;
use crate::support::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the fenced blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match &mut open {
            Some(block) if line.trim() == "```" => {
                blocks.push(std::mem::take(block));
                open = None;
            }
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line.trim() == format!("```{language}") => open = Some(String::new()),
            None => {}
        }
    }
    blocks
}

#[test]
fn suites_in_the_docs_are_valid() {
    let mut count = 0;
    for page in ["README.md", "docs/suite.md", "docs/probe.md"] {
        for suite in blocks(page, "toml") {
            let dir = TestDir::with_suite(&suite)
                .write(
                    "cases.jsonl",
                    "{\"id\": \"fr\", \"country\": \"France\", \"expected\": \"Paris\"}\n",
                )
                .write("agent.py", "print(input())\n")
                .write("short.txt", "Capital of {{ country }}?\n")
                .write("polite.txt", "Please name the capital of {{ country }}.\n")
                .write("receipt.png", b"\x89PNG\r\n\x1a\n");
            let mut command = dir.command(&["check"]);
            for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY"] {
                command.env(key, "a-key-for-the-test");
            }
            let output = command.output().unwrap();
            assert!(
                output.status.success(),
                "{page}:\n{suite}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
            count += 1;
        }
    }
    assert!(count >= 3, "{count} suites");
}

#[test]
fn columns_of_the_checks_page_are_checks() {
    let files = blocks("docs/checks.md", "csv");
    assert_eq!(files.len(), 1);
    let suite = r#"
[[target]]
name = "program"
command = ["printf", "Paris, \"Tokyo\""]
prompt = "{{ country }}"
[cases]
file = "cases.csv"
"#;
    let dir = TestDir::with_suite(suite).write("cases.csv", &files[0]);
    let output = dir.run(&["run", "--no-fail"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let mut checks: Vec<(String, usize)> = dir
        .trials()
        .iter()
        .map(|trial| {
            let case = trial["key"]["case"].as_str().unwrap().to_owned();
            (case, trial["checks"].as_array().unwrap().len())
        })
        .collect();
    checks.sort();
    assert_eq!(checks, [("de".to_owned(), 1), ("fr".to_owned(), 2), ("jp".to_owned(), 2)]);
}

#[test]
fn extra_fields_of_the_suite_page_are_sent() {
    let server = Server::start(|_, request| {
        let reply = if request.line.contains("/chat/completions") {
            json!({"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}]})
        } else if request.line.contains("/messages") {
            json!({"content": [{"type": "text", "text": "Paris"}], "stop_reason": "end_turn"})
        } else {
            let content = json!({"parts": [{"text": "Paris"}]});
            json!({"candidates": [{"content": content, "finishReason": "STOP"}]})
        };
        (200, "content-type: application/json\r\n", reply.to_string())
    });
    let suites = blocks("docs/suite.md", "toml");
    let suite = suites.iter().find(|suite| suite.contains("extra = {")).unwrap();
    // The models of the page, at the server of the test.
    let address = format!("\nbase_url = \"{}\"\nprovider = ", server.origin());
    let suite = suite.replace("\nprovider = ", &address);
    let dir = TestDir::with_suite(&suite).write(
        "cases.jsonl",
        "{\"id\": \"fr\", \"country\": \"France\", \"expected\": \"Paris\"}\n",
    );
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let sent = |path: &str| -> Value {
        let requests = server.requests();
        let request = requests.iter().find(|request| request.line.contains(path)).unwrap();
        serde_json::from_str(&request.body).unwrap()
    };
    let body = sent("/chat/completions");
    assert_eq!((&body["seed"], &body["top_logprobs"]), (&json!(7), &json!(2)));
    assert_eq!((&body["service_tier"], &body["logprobs"]), (&json!("flex"), &json!(true)));
    let body = sent("/messages");
    assert_eq!((&body["top_k"], &body["service_tier"]), (&json!(40), &json!("standard_only")));
    let config = &sent(":generateContent")["generationConfig"];
    let expected = json!({"temperature": 0.5, "topK": 40, "seed": 7, "responseLogprobs": true});
    assert_eq!(config, &expected);
}

/// Returns all fenced blocks of a page: info string and contents.
fn fences(page: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut fences: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        match (line.strip_prefix("```"), fences.last_mut()) {
            (Some(_), _) if is_open => is_open = false,
            (Some(words), _) => {
                is_open = true;
                fences.push((words.to_owned(), String::new()));
            }
            (None, Some((_, block))) if is_open => {
                block.push_str(line);
                block.push('\n');
            }
            _ => {}
        }
    }
    fences
}

/// Runs the commands of a block, which must all succeed, and returns their number.
fn run_all(dir: &TestDir, block: &str) -> usize {
    for line in block.lines() {
        let output = dir.run(&words(line)[1..]);
        assert_eq!(output.code, 0, "{line}\n{}", output.transcript());
    }
    block.lines().count()
}

#[test]
fn first_suite_page_can_be_followed() {
    let mut dir = TestDir::new();
    let mut commands = 0;
    for (words, block) in fences("docs/first-suite.md") {
        if let Some((_, name)) = words.split_once(' ') {
            dir = dir.write(name, block);
            continue;
        }
        assert_eq!(words, "sh");
        commands += run_all(&dir, &block);
    }
    assert!(commands >= 7, "{commands} commands");
}

/// Adds fake agents that print the output of real ones and write the files that the page expects.
fn with_agents(dir: TestDir) -> TestDir {
    let answer = |events: &str| {
        format!(
            "#!/bin/sh\nif grep -q 'release notes'; then cp /dev/null NOTES.md; echo '{{\"type\":\"skill\",\"file\":\"release-notes/SKILL.md\"}}'; fi\ncp /dev/null README.md\necho '{events}'\n"
        )
    };
    let claude = r#"{"type":"result","is_error":false,"result":"done","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let codex = r#"{"type":"item.completed","item":{"type":"agent_message","text":"done"}}"#;
    dir.with_program("claude", &answer(claude)).with_program("codex", &answer(codex))
}

#[test]
fn programs_page_works_as_documented() {
    let page = std::fs::read_to_string(root().join("docs/programs.md")).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let service = Server::start(|_, request| {
        let sent: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(sent["options"]["style"], "short");
        let usage = serde_json::json!({"in": 1, "out": 2, "usd": 0.1});
        let answer = serde_json::json!({"answers": [{"text": sent["question"]}], "usage": usage});
        (200, "", answer.to_string())
    });
    let mut commands = 0;
    let mut dir = with_agents(TestDir::new());
    for (words, block) in fences("docs/programs.md") {
        match words.split_once(' ') {
            Some((_, name)) => {
                dir = dir.with(name, block.replace("http://127.0.0.1:8080/ask", &service.url));
            }
            None if words == "sh" => {
                for line in block.lines() {
                    let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
                    let mut command = dir.command(&arguments);
                    let output = command.env("SERVICE_TOKEN", "a-token").output().unwrap();
                    let output = CommandOutput::from(output);
                    assert_eq!(output.code, 0, "{line}\n{}", output.transcript());
                    commands += 1;
                }
                // Each section starts in an empty directory.
                dir = with_agents(TestDir::new());
            }
            // Messages of the protocol.
            None => assert!(serde_json::from_str::<serde_json::Value>(&block).is_ok(), "{block}"),
        }
    }
    assert_eq!((commands, sections.len()), (6, 6));
}

#[test]
fn tools_page_works_as_documented() {
    let mut commands = 0;
    let mut dir = TestDir::new();
    for (words, block) in fences("docs/agents.md") {
        if let Some((_, name)) = words.split_once(' ') {
            dir = dir.with(name, block);
            continue;
        }
        assert_eq!(words, "sh");
        commands += run_all(&dir, &block);
        // Each section starts in an empty directory.
        dir = TestDir::new();
    }
    assert_eq!(commands, 3);
    let page = std::fs::read_to_string(root().join("docs/agents.md")).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&TestDir::new().run(&["schema"]).stdout).unwrap();
    let target = &schema["properties"]["target"]["items"]["properties"];
    for tool in target["tools"]["items"]["enum"].as_array().unwrap() {
        let row = format!("| `{}` |", tool.as_str().unwrap());
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn ci_recipes_run() {
    let action = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let mut runs = 0;
    for (words, block) in fences("docs/ci.md") {
        let input = |name: &str| {
            let line =
                block.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")));
            line.map(str::to_owned)
        };
        // The action runs this command; its inputs must exist.
        let by_action = block.contains("uses: bakeoff-rs/bakeoff@").then(|| {
            for name in ["suite", "args"] {
                assert!(action.contains(&format!("\n  {name}:\n")), "{name}");
            }
            let (suite, args) = (input("suite").unwrap(), input("args").unwrap());
            format!("{suite} --ci --junit junit.xml {args}")
        });
        let commands = block.lines().filter_map(|line| {
            let line = line.trim().trim_start_matches("- ").trim_start_matches("run: ");
            line.strip_prefix("bakeoff run ").map(str::to_owned)
        });
        for command in commands.chain(by_action) {
            assert_eq!(words, "yaml");
            let dir = TestDir::new();
            assert_eq!(dir.run(&["init", "evals"]).code, 0);
            let words: Vec<&str> = command.split_whitespace().collect();
            let output = dir.run(&[&["run"], words.as_slice()].concat());
            assert_eq!(output.code, 0, "{command}\n{}", output.transcript());
            assert!(dir.path().join("junit.xml").is_file());
            runs += 1;
        }
    }
    assert_eq!(runs, 2);
}

/// Returns the codes of warnings and errors in the sources of a folder.
fn codes(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            codes(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for prefix in ["EVAL_", "PACE_", "CACHE_", "MEMORY_"] {
                for mark in ["\"", "["] {
                    let start = format!("{mark}{prefix}");
                    let parts = text.split(&start).skip(1);
                    found.extend(parts.filter_map(|part| {
                        let is_end = |letter: char| !letter.is_ascii_uppercase() && letter != '_';
                        let (name, rest) = part.split_at(part.find(is_end)?);
                        rest.starts_with(['"', ']']).then(|| format!("{prefix}{name}"))
                    }));
                }
            }
        }
    }
}

#[test]
fn every_code_is_documented() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        codes(&entry.unwrap().path().join("src"), &mut found);
    }
    let page = std::fs::read_to_string(root().join("docs/ci.md")).unwrap();
    for code in &found {
        assert!(page.contains(&format!("`{code}`")), "{code} is not in docs/ci.md");
    }
    assert!(found.len() >= 20, "{found:?}");
}

#[test]
fn every_summary_field_is_documented() {
    let dir = TestDir::new();
    dir.run(&["init"]);
    dir.run(&["run", "--quiet", "--trials", "4"]);
    let page = std::fs::read_to_string(root().join("docs/numbers.md")).unwrap();
    let summary = dir.summary();
    let target = summary["targets"][1].as_object().unwrap();
    let case = target["cases"][0].as_object().unwrap();
    // Self-explanatory names.
    let plain = ["id", "target", "gate", "cases", "passed", "failed", "usage", "status", "trials"];
    let counts = ["total_cases", "inconclusive", "trials_per_case", "pass_threshold"];
    for name in target.keys().chain(case.keys()).map(String::as_str) {
        let known = plain.contains(&name) || counts.contains(&name);
        assert!(known || page.contains(&format!("`{name}`")), "{name} is not in docs/numbers.md");
    }
}

#[test]
fn probe_page_commands_run() {
    for command in blocks("docs/probe.md", "sh") {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[0], "bakeoff");
        let output = TestDir::new().run(&words[1..]);
        assert_eq!(output.code, 0, "{command}\n{}", output.transcript());
        assert!(output.stdout.contains("limits = {"), "{}", output.stdout);
    }
}

/// Splits a command into words, some of which are quoted.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            1 => vec![part],
            _ => part.split_whitespace().collect(),
        })
        .collect()
}

#[test]
fn commands_for_stored_runs_work() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["init"]).code, 0);
    assert_eq!(dir.run(&["run", "--no-fail"]).code, 0);
    let commands: usize =
        blocks("docs/runs.md", "sh").iter().map(|block| run_all(&dir, block)).sum();
    assert_eq!(commands, 7);
}

#[test]
fn race_page_commands_run() {
    let mut dir = TestDir::new();
    let mut commands = 0;
    let mut last = String::new();
    for (about, block) in fences("docs/race.md") {
        match about.split_once(' ') {
            Some((_, name)) => dir = dir.write(name, block),
            None if about == "sh" => {
                commands += run_all(&dir, &block);
                last = block.lines().last().unwrap().to_owned();
            }
            // A test of the crate's documentation.
            None if about == "rust" => {}
            // Printed output of the last command, except figures that depend on the prompt and the clock.
            None => {
                let output = dir.run(&words(&last)[1..]);
                for line in block.lines().filter(|line| !line.contains(" s · ")) {
                    assert!(
                        output.stderr.lines().any(|printed| printed == line),
                        "{line}\n{}",
                        output.transcript()
                    );
                }
            }
        }
    }
    assert_eq!(commands, 13);
}

#[test]
fn select_page_works_as_documented() {
    let mut commands = 0;
    for (about, block) in fences("docs/select.md") {
        match about.as_str() {
            "sh" => {
                let block = block.replace("\\\n", "");
                for line in block.lines().filter(|line| !line.starts_with("bakeoff-bench")) {
                    let example = root().join("examples/select").display().to_string();
                    let line = line.replace("examples/select", &example);
                    commands += run_all(&TestDir::new(), &line);
                }
            }
            "toml" => {
                let case = "{\"id\": \"one\", \"question\": \"Why?\"}\n";
                let dir = TestDir::with_suite(&block).write("cases.jsonl", case);
                assert_eq!(run_all(&dir, "bakeoff select"), 1);
            }
            _ => {
                let example = root().join("examples/select");
                let output = TestDir::new().run(&["select", example.to_str().unwrap()]);
                // Rows of the ranking have a measured latency, and the list of results is a template.
                if block.starts_with("best: ") {
                    assert!(output.stdout.contains(&block), "{block}\n{}", output.transcript());
                }
            }
        }
    }
    assert_eq!(commands, 2);
    // Every method is documented.
    let page = std::fs::read_to_string(root().join("docs/select.md")).unwrap();
    for method in bakeoff_select::SELECTOR_NAMES {
        assert!(page.contains(&format!("| `{method}` |")), "{method}");
    }
}

#[test]
fn map_page_works_as_documented() {
    let mut dir = TestDir::new();
    let (mut commands, mut printed) = (0, String::new());
    for (about, block) in fences("docs/map.md") {
        match about.split_once(' ') {
            Some((_, name)) => dir = dir.write(name, block),
            None if about == "sh" => {
                for line in block.lines() {
                    let output = dir.run(&words(line)[1..]);
                    assert_eq!(output.code, 0, "{line}\n{}", output.transcript());
                    printed = format!("{}{}", output.stderr, output.stdout);
                    commands += 1;
                }
            }
            None => assert_eq!(block, printed, "output of the previous command"),
        }
    }
    assert_eq!(commands, 7);
    assert!(dir.path().join("summaries.csv.batches.jsonl").is_file());
    let example = root().join("examples/map");
    let path = |name: &str| example.join(name).display().to_string();
    let (rows, task) = (path("reviews.csv"), path("task.toml"));
    let output = dir.run(&["map", &rows, "-t", &task, "-m", "sim/map", "-o", "example.csv"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    // Every key of a task is documented.
    let page = std::fs::read_to_string(root().join("docs/map.md")).unwrap();
    for key in bakeoff_map::TASK_KEYS {
        let row = [format!("| `{key}` |"), format!("| `[{key}.<field>]` |")];
        assert!(row.iter().any(|row| page.contains(row)), "{key}");
    }
    for key in bakeoff_map::FIELD_KEYS {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn examples_run() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let suite = entry.unwrap().path();
        if suite.join("bakeoff.toml").is_file() {
            let dir = TestDir::new();
            let text = std::fs::read_to_string(suite.join("bakeoff.toml")).unwrap();
            let command = if text.contains("\n[select]\n") { "select" } else { "run" };
            let output = dir.run(&[command, suite.to_str().unwrap()]);
            assert_eq!(output.code, 0, "{}\n{}", suite.display(), output.transcript());
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn readme_output_matches_the_program() {
    let printed = &blocks("README.md", "text")[0];
    let suite = root().join("examples/capitals");
    let output = TestDir::new().run(&["run", suite.to_str().unwrap()]);
    // Except the command, times and the run id.
    let is_fixed =
        |line: &&str| !["$ ", " ms ", "results:", "…"].iter().any(|mark| line.contains(mark));
    // The width of columns depends on the times in them.
    let same = |one: &str, other: &str| one.split_whitespace().eq(other.split_whitespace());
    for line in printed.lines().filter(is_fixed) {
        let is_there =
            output.stdout.lines().chain(output.stderr.lines()).any(|printed| same(printed, line));
        assert!(is_there, "{line:?} is not in\n{}", output.transcript());
    }
}

#[test]
fn readme_output_of_a_search_matches_the_program() {
    let printed = &blocks("README.md", "text")[1];
    let example = root().join("examples/select").display().to_string();
    let dir = TestDir::new();
    let command = printed.lines().next().unwrap().strip_prefix("$ bakeoff ").unwrap();
    let command = command.replace("examples/select", &example);
    let output = dir.run(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(output.code, 0, "{}", output.transcript());
    // Rows have measured latencies, which also decide on the front.
    let (rows, findings) = printed.split_once("…\n").unwrap();
    assert!(output.stdout.contains(findings), "{findings}\n{}", output.transcript());
    let without_marks = |line: &str| -> Vec<String> {
        line.split_whitespace().take(11).map(str::to_owned).collect()
    };
    for row in rows.lines().skip(3) {
        let found = output.stdout.lines().any(|line| without_marks(line) == without_marks(row));
        assert!(found, "{row}\n{}", output.transcript());
    }
    let output = dir.run(&["run", &example, "--roles", "roles.toml", "--threshold", "0"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn first_example_equals_the_init_template() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["init"]).code, 0);
    for name in ["bakeoff.toml", "cases.jsonl"] {
        let example = std::fs::read(root().join("examples/capitals").join(name)).unwrap();
        assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), example, "{name}");
    }
}

#[test]
fn readme_lists_every_command() {
    let help = TestDir::new().run(&["--help"]).stdout;
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    for line in commands.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().unwrap();
        assert!(
            name == "help" || readme.contains(&format!("| `bakeoff {name}")),
            "{name} is not in the README"
        );
    }
}

#[test]
fn every_suite_setting_is_documented() {
    let schema = TestDir::new().run(&["schema"]).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let page = ["docs/suite.md", "docs/checks.md", "docs/programs.md", "docs/agents.md"]
        .map(|page| std::fs::read_to_string(root().join(page)).unwrap())
        .concat();
    let mut missing = Vec::new();
    collect_names(&schema, &mut |name| {
        if !page.contains(&format!("`{name}`")) {
            missing.push(name.to_owned());
        }
    });
    assert!(missing.is_empty(), "on no page of docs: {missing:?}");
}

fn collect_names(schema: &serde_json::Value, found: &mut impl FnMut(&str)) {
    match schema {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                if let (true, Some(properties)) = (key == "properties", value.as_object()) {
                    properties.keys().for_each(|name| found(name));
                }
                collect_names(value, found);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_names(item, found)),
        _ => {}
    }
}
