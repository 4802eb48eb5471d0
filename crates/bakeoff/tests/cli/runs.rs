//! `run`, `list`, `init`, `check`, `schema` and `cache` with valid input.

use crate::support::{Provider, TestDir};
use serde_json::Value;

/// Returns a suite with one simulated target.
fn suite(model: &str, settings: &str) -> String {
    format!(
        r#"
[suite]
name = "small"
{settings}
[[target]]
name = "one"
model = "{model}"
prompt = "Is {{{{ thing }}}} good?"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "ok"
"#
    )
}

fn cases(count: usize) -> String {
    (1..=count)
        .map(|n| {
            format!(
                "{{\"id\": \"c{n}\", \"thing\": \"t{n}\", \"tags\": [\"{}\"]}}\n",
                if n % 2 == 0 { "even" } else { "odd" }
            )
        })
        .collect()
}

fn test_dir(model: &str, settings: &str, count: usize) -> TestDir {
    TestDir::with_suite(&suite(model, settings)).write("cases.jsonl", cases(count))
}

#[test]
fn suite_written_by_init_runs() {
    let dir = TestDir::new();
    assert_eq!(dir.run(&["init"]).code, 0);
    let check = dir.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.stderr);
    insta::assert_snapshot!(check.stdout, @r#"
    capitals: bakeoff.toml is valid
    8 cases × 2 targets × 3 trials = 48 trials
      careful (sim/careful): 24 trials, about 360 input and 4800 output tokens, about $0.00
      hasty (sim/hasty): 24 trials, about 192 input and 4800 output tokens, about $0.00
    estimated cost: $0.00
    "#);
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    assert!(run.stdout.contains("verdict: passed"), "{}", run.stdout);
    assert!(dir.run(&["list"]).stdout.contains("passed  careful 8/8"));
}

#[test]
fn init_overwrites_files_only_with_force() {
    let dir = TestDir::new().write("cases.jsonl", "mine");
    let rejected = dir.run(&["init"]);
    insta::assert_snapshot!(rejected.transcript(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: ./cases.jsonl already exists
      hint: `--force` overwrites it
    "#);
    assert!(!dir.path().join("bakeoff.toml").exists());
    assert_eq!(dir.run(&["init", "--force"]).code, 0);
}

#[test]
fn exit_code_follows_the_verdict() {
    for (model, settings, arguments, expected) in [
        ("sim/pass-1", "", &[][..], 0),
        ("sim/pass-0", "", &[], 1),
        ("sim/pass-0", "", &["--no-fail"], 0),
        ("sim/pass-0.5", "trials = 20\nthreshold = 0.2", &[], 0),
        ("sim/pass-0.5", "trials = 20\nthreshold = 0.9", &[], 1),
        ("sim/fault-400", "", &[], 3),
        ("sim/fault-400", "", &["--no-fail"], 0),
    ] {
        let dir = test_dir(model, settings, 4);
        let output = dir.run(&[&["run"], arguments].concat());
        assert_eq!(
            output.code,
            expected,
            "{model} {settings} {arguments:?}\n{}",
            output.transcript()
        );
    }
}

#[test]
fn three_of_five_pass_at_sixty_percent() {
    let run = |seed: u32| {
        let dir = test_dir("sim/pass-0.6", "trials = 5\nthreshold = 0.6", 1);
        let code = dir.run(&["run", "--seed", &seed.to_string()]).code;
        (dir.summary()["targets"][0]["pass_count"].as_u64().unwrap(), code)
    };
    // A third of all seeds make exactly three of five trials pass.
    let codes: Vec<(u64, i32)> = (0..200).map(run).take_while(|(passed, _)| *passed != 3).collect();
    let (passed, code) = run(codes.len() as u32);
    assert_eq!((passed, code), (3, 0));
}

#[test]
fn same_seed_gives_same_results() {
    let outputs = |seed: &str| {
        let dir = test_dir("sim/pass-0.5", "trials = 3", 10);
        dir.run(&["run", "--no-cache", "--seed", seed]);
        let trials = dir.trials();
        assert_eq!(trials.len(), 30);
        trials.iter().map(|trial| trial["attempt"]["output"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(outputs("7"), outputs("7"));
    assert_ne!(outputs("7"), outputs("8"));
}

#[test]
fn filters_select_cases_and_targets() {
    let ids = |arguments: &[&str]| {
        let dir = test_dir("sim/pass-1", "", 4);
        let output = dir.run(&[&["run"], arguments].concat());
        assert_eq!(output.code, 0, "{}", output.stderr);
        let trials = dir.trials();
        trials
            .iter()
            .map(|trial| trial["key"]["case"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&["--case", "c2", "--case", "c3"]), ["c2", "c3"]);
    assert_eq!(ids(&["--tag", "odd"]), ["c1", "c3"]);
    assert_eq!(ids(&["--target", "one"]).len(), 4);
}

#[test]
fn filters_that_match_nothing_are_usage_errors() {
    let dir = test_dir("sim/pass-1", "", 4);
    let printed: Vec<String> = [&["--case", "c22"][..], &["--tag", "off"], &["--target", "two"]]
        .iter()
        .map(|arguments| dir.run(&[&["run"], *arguments].concat()).transcript())
        .collect();
    insta::assert_snapshot!(printed.join("\n"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: there is no case `c22`
      hint: did you mean `c2`?

    exit 2
    --- stdout
    --- stderr
    error: no case has the tag `off`
      hint: expected one of: `even`, `odd`

    exit 2
    --- stdout
    --- stderr
    error: there is no target `two`
      hint: expected one of: `one`
    "#);
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn invalid_numbers_are_usage_errors() {
    let dir = test_dir("sim/pass-1", "", 1);
    for (arguments, code) in [
        (["--trials", "0"], "EVAL_INVALID_TRIALS_CONFIG"),
        (["--trials", "1001"], "EVAL_INVALID_TRIALS_CONFIG"),
        (["--threshold", "1.5"], "EVAL_INVALID_THRESHOLD"),
        (["--suite-threshold", "nan"], "EVAL_INVALID_THRESHOLD"),
    ] {
        let output = dir.run(&[&["run"], &arguments[..]].concat());
        assert_eq!(output.code, 2, "{arguments:?}");
        assert!(output.stderr.contains(code), "{arguments:?}\n{}", output.stderr);
    }
}

#[test]
fn json_streams_events_and_ends_with_the_verdict() {
    let dir = test_dir("sim/pass-0", "", 2);
    let output = dir.run(&["run", "--json"]);
    assert_eq!((output.code, output.stderr.as_str()), (1, ""));
    let events = output.events();
    assert_eq!(events[0]["event"], "run_started");
    assert_eq!(events[0]["plan"]["total"], 2);
    let done = events.last().unwrap();
    assert_eq!(
        (&done["event"], &done["verdict"], &done["exit_code"]),
        (&"done".into(), &"failed".into(), &1.into())
    );
    assert_eq!(done["summary"]["targets"][0]["cases"].as_array().unwrap().len(), 2);
    assert!(std::path::Path::new(done["run_dir"].as_str().unwrap()).is_relative());
    assert_eq!(events.iter().filter(|event| event["event"] == "trial_finished").count(), 2);
}

#[test]
fn quiet_run_prints_nothing() {
    let output = test_dir("sim/pass-0", "", 2).run(&["run", "--quiet"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (1, "", ""));
}

#[test]
fn single_target_is_copied_to_the_top_of_the_summary() {
    let dir = test_dir("sim/pass-1", "", 2);
    dir.run(&["run"]);
    let summary = dir.summary();
    assert_eq!(summary["suite_pass"], true);
    assert_eq!(summary["total_cases"], 2);
    assert_eq!(summary["cases"], summary["targets"][0]["cases"]);
    let trial = dir.run_folder().join("c1/trial-1");
    assert_eq!(std::fs::read_to_string(trial.join("stdout.txt")).unwrap(), "ok");
    for name in ["stderr.txt", "trace.jsonl", "result.json"] {
        assert!(trial.join(name).is_file(), "{name}");
    }
}

#[test]
fn artifacts_are_stored_as_configured() {
    for (setting, expected) in [("all", 10), ("failures", 5), ("none", 0)] {
        let settings = format!("trials = 10\nthreshold = 0\nartifacts = \"{setting}\"");
        let dir = test_dir("sim/pass-0.5", &settings, 1);
        dir.run(&["run", "--seed", "3"]);
        let failed = dir.trials().iter().filter(|trial| trial["status"] == "failed").count();
        let case = dir.run_folder().join("c1");
        let folders = std::fs::read_dir(&case).map_or(0, |entries| {
            entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
        });
        assert_eq!(case.join("aggregated.json").is_file(), setting != "none");
        match setting {
            "failures" => assert_eq!(folders, failed),
            _ => assert_eq!(folders, expected, "{setting}"),
        }
        assert!(failed > 0 && failed < 10, "a seed with both kinds");
    }
}

#[test]
fn programs_get_the_prompt_on_stdin_and_are_checked() {
    let dir = TestDir::with_suite(
        r#"
[[target]]
name = "cat"
command = ["cat"]
prompt = "{{ say }}"
[[target]]
name = "script"
command = ["sh", "script.sh"]
prompt = "{{ say }}"
[[cases.inline]]
id = "hello"
say = "hello"
[[cases.inline]]
id = "bye"
say = "bye"
[[check]]
kind = "contains"
value = "{{ say }}"
[[check]]
kind = "exit_code"
targets = ["script"]
"#,
    )
    .write(
        "script.sh",
        "read line; pwd >&2; echo \"$line $BAKEOFF_TRIAL_ID\"; test \"$line\" = hello",
    );
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
    let statuses: Vec<String> = dir
        .trials()
        .iter()
        .map(|trial| {
            format!("{} {} {}", trial["key"]["target"], trial["key"]["case"], trial["status"])
        })
        .collect();
    assert_eq!(
        statuses,
        [
            r#""cat" "bye" "passed""#,
            r#""cat" "hello" "passed""#,
            r#""script" "bye" "failed""#,
            r#""script" "hello" "passed""#,
        ]
    );
    let script = &dir.trials()[3]["attempt"];
    assert_eq!(script["output"], "hello script/hello/1\n");
    // It ran in its own directory, which is removed.
    let folder = script["stderr"].as_str().unwrap().trim();
    assert!(folder.contains("/bakeoff-") && !std::path::Path::new(folder).exists(), "{folder}");
}

#[test]
fn program_without_checks_is_judged_by_its_exit_code() {
    let suite = |command: &str| {
        format!(
            "[[target]]\nname = \"p\"\ncommand = {command}\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n"
        )
    };
    for (command, code) in [(r#"["true"]"#, 0), (r#"["false"]"#, 1)] {
        let dir = TestDir::with_suite(&suite(command));
        let output = dir.run(&["run"]);
        assert_eq!(output.code, code, "{command}\n{}", output.transcript());
    }
}

#[test]
fn responses_are_cached_as_configured() {
    for (setting, cached) in [("run", 0), ("shared", 3), ("none", 0)] {
        let dir = test_dir("sim/pass-1", &format!("cache = \"{setting}\""), 3);
        dir.run(&["run", "--out", "first"]);
        dir.run(&["run"]);
        assert_eq!(dir.summary()["stats"]["cached"], cached, "{setting}");
        let kept = if setting == "none" {
            "0 responses"
        } else if setting == "run" {
            "6 responses of 2 runs"
        } else {
            "3 responses of 1 run"
        };
        let stats = dir.run(&["cache", "stats"]).stdout;
        assert!(stats.contains(kept), "{setting}: {stats}");
        dir.run(&["cache", "clear"]);
        assert!(dir.run(&["cache", "stats"]).stdout.contains("0 responses"));
    }
}

#[test]
fn unusable_cache_prints_a_warning() {
    let dir = test_dir("sim/pass-1", "", 1).write("cache", "a file where the folder should be");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let warning = "warning: responses are not cached: ";
    let is_warning =
        |line: &str| line.starts_with(warning) && line.ends_with("[CACHE_UNAVAILABLE]");
    assert!(output.stderr.lines().any(is_warning), "{}", output.stderr);
    let dir = dir
        .write("rows.csv", "text\na\n")
        .write("task.toml", "instructions = \"Copy it.\"\n[output.copy]\ntype = \"string\"\n");
    let map = ["map", "rows.csv", "-t", "task.toml", "-m", "sim/map", "-o", "out.jsonl"];
    let output = dir.run(&map);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(output.stderr.lines().any(is_warning), "{}", output.stderr);
    let events = dir.run(&[&map[..], &["--force", "--json"]].concat()).events();
    assert!(events.iter().any(|event| event["code"] == "CACHE_UNAVAILABLE"), "{events:?}");
}

#[test]
fn unwritable_directory_is_an_internal_error() {
    let dir = test_dir("sim/pass-1", "", 1).write("runs", "a file where the folder should be");
    let output = dir.run(&["run"]);
    assert_eq!((output.code, output.stdout.as_str()), (4, ""));
    assert!(output.stderr.contains("cannot create runs"), "{}", output.stderr);
}

#[test]
fn targets_over_http_run_together() {
    let provider = Provider::start(&[]);
    let dir = TestDir::with_suite(&format!(
        r#"
[models.chat]
provider = "openai"
model = "sim/echo"
base_url = "{url}"
[models.messages]
provider = "anthropic"
model = "sim/echo"
base_url = "{url}"
stream = true
[[target]]
name = "chat"
model = "chat"
prompt = "say {{{{ word }}}}"
[[target]]
name = "messages"
model = "messages"
prompt = "say {{{{ word }}}}"
[cases]
file = "cases.csv"
[[check]]
kind = "regex"
value = "^say {{{{ word }}}}$"
"#,
        url = provider.base_url
    ))
    .write("cases.csv", "id,word\n1,one\n2,two\n");
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert!(dir.run_folder().join("messages/2/trial-1/result.json").is_file());
    let tokens = |target: usize| dir.summary()["targets"][target]["usage"]["output"].clone();
    assert_eq!(tokens(0), tokens(1));
}

#[test]
fn schema_describes_the_suite_file() {
    let output = TestDir::new().run(&["schema"]);
    let schema: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["suite"]["properties"]["trials"]["maximum"], 1000);
    let kinds = schema["properties"]["check"]["items"]["oneOf"].as_array().unwrap();
    assert!(kinds.iter().any(|kind| kind["properties"]["kind"]["const"] == "regex"));
}

#[test]
fn killed_run_is_listed_as_interrupted() {
    let dir = test_dir("sim/pass-1", "", 3);
    dir.run(&["run"]);
    let folder = dir.run_folder();
    std::fs::remove_file(folder.join("summary.json")).unwrap();
    let journal = std::fs::read(folder.join("journal.jsonl")).unwrap();
    std::fs::write(folder.join("journal.jsonl"), &journal[..journal.len() - 5]).unwrap();
    assert!(dir.run(&["list"]).stdout.contains("  interrupted  2 trials finished\n"));
    let listed = dir.run(&["list", "--json"]).done();
    let listed = &listed["runs"][0];
    assert_eq!((&listed["trials"], &listed["state"]), (&2.into(), &"interrupted".into()));
}

#[test]
fn unselected_target_needs_no_key() {
    let dir = test_dir("sim/pass-1", "", 1);
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let other = "[[target]]\nname = \"real\"\nmodel = \"openai/gpt-4o-mini\"\nprompt = \"x\"\n";
    let dir = dir.write("bakeoff.toml", format!("{suite}{other}"));
    assert_eq!(dir.run(&["run"]).code, 2);
    assert_eq!(dir.run(&["run", "--target", "one"]).code, 0);
}

#[test]
fn unknown_price_is_not_zero_cost() {
    let models = |model: &str| {
        format!(
            "[models.m]\nprovider = \"openai\"\nmodel = \"{model}\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
        )
    };
    let dir = test_dir("m", "", 1);
    let suite = std::fs::read_to_string(dir.path().join("bakeoff.toml")).unwrap();
    let dir = dir.write("bakeoff.toml", format!("{}{suite}", models("gpt-4o-mini")));
    assert!(dir.run(&["check"]).stdout.contains("estimated cost: unknown"));
}

#[test]
fn empty_expected_value_is_an_error() {
    let dir = TestDir::with_suite(
        "[[target]]\nname = \"a\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n[cases]\nfile = \"cases.csv\"\n[[check]]\nkind = \"contains\"\nvalue = \"{{ expected }}\"\n",
    )
    .write("cases.csv", "id,expected\na,x\nb,\n");
    assert_eq!(dir.run(&["run"]).code, 3);
    let empty = &dir.trials()[1];
    assert_eq!(empty["status"], "error");
    assert_eq!(empty["attempt"]["error"]["message"], "check `contains`: the value is empty");
}

#[test]
fn templates_support_minijinja_filters() {
    let suite = suite("sim/pass-1", "").replace(
        "Is {{ thing }} good?",
        "{% for i in range(2) %}{{ i }}{% endfor %}{% if more is defined %}{{ more }}{% endif %}{{ other | default('-') }}{{ thing }}",
    );
    let dir = TestDir::with_suite(&suite).write("cases.jsonl", cases(1));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
}

#[test]
fn paths_may_be_invalid_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let dir = test_dir("sim/pass-1", "", 1);
    let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    for name in ["bakeoff.toml", "cases.jsonl"] {
        std::fs::copy(dir.path().join(name), odd.join(name)).unwrap();
    }
    let status = dir.command(&["run", "--quiet"]).arg(&odd).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn lost_output_is_an_internal_error() {
    let dir = test_dir("sim/pass-1", "", 1);
    for arguments in [&["schema"][..], &["run", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = dir.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
    }
}

#[test]
fn newer_runs_are_listed_first() {
    let dir = test_dir("sim/pass-1", "", 1);
    for _ in 0..5 {
        assert_eq!(dir.run(&["run", "--quiet"]).code, 0);
    }
    let listed = dir.run(&["list", "--json"]).done();
    let started: Vec<String> = listed["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            let path = dir.path().join(run["run_dir"].as_str().unwrap()).join("run.json");
            let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            // Padded to nine digits, so that the text order is the time order.
            let (seconds, fraction) = run["started_at"].as_str().unwrap().split_once('.').unwrap();
            format!("{seconds}.{:0<9}", fraction.trim_end_matches('Z'))
        })
        .collect();
    assert_eq!(started.len(), 5);
    assert!(started.is_sorted_by(|one, other| one > other), "{started:?}");
}
