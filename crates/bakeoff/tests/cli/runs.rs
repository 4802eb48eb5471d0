//! `run`, `list`, `init`, `check`, `schema` and `cache` when all is well.

use crate::support::{Provider, Workplace};
use serde_json::Value;

/// One simulated target that passes with the given probability.
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

fn workplace(model: &str, settings: &str, count: usize) -> Workplace {
    Workplace::with_suite(&suite(model, settings)).write("cases.jsonl", cases(count))
}

#[test]
fn what_init_writes_runs_at_once() {
    let place = Workplace::new();
    assert_eq!(place.run(&["init"]).code, 0);
    let check = place.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.stderr);
    insta::assert_snapshot!(check.stdout, @r#"
    capitals: nothing is wrong with bakeoff.toml
    8 cases × 2 targets × 3 trials = 48 trials
      careful (sim/careful): 24 trials, about 360 tokens in and 4800 out, about $0.00
      hasty (sim/hasty): 24 trials, about 192 tokens in and 4800 out, about $0.00
    estimated cost: $0.00
    "#);
    let run = place.run(&["run"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stdout.contains("verdict: passed"), "{}", run.stdout);
    assert!(place.run(&["list"]).stdout.contains("passed  careful 8/8"));
}

#[test]
fn init_replaces_nothing_unless_told_to() {
    let place = Workplace::new().write("cases.jsonl", "mine");
    let refused = place.run(&["init"]);
    insta::assert_snapshot!(refused.shown(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: ./cases.jsonl exists already
      hint: `--force` replaces it
    "#);
    assert!(!place.path().join("bakeoff.toml").exists());
    assert_eq!(place.run(&["init", "--force"]).code, 0);
}

#[test]
fn the_exit_code_follows_the_verdict() {
    for (model, settings, arguments, expected) in [
        ("sim/pass-1", "", &[][..], 0),
        ("sim/pass-0", "", &[], 1),
        ("sim/pass-0", "", &["--no-fail"], 0),
        ("sim/pass-0.5", "trials = 20\nthreshold = 0.2", &[], 0),
        ("sim/pass-0.5", "trials = 20\nthreshold = 0.9", &[], 1),
        ("sim/fault-400", "", &[], 3),
        ("sim/fault-400", "", &["--no-fail"], 0),
    ] {
        let place = workplace(model, settings, 4);
        let ran = place.run(&[&["run"], arguments].concat());
        assert_eq!(ran.code, expected, "{model} {settings} {arguments:?}\n{}", ran.shown());
    }
}

#[test]
fn three_of_five_pass_at_sixty_percent() {
    let ran = |seed: u32| {
        let place = workplace("sim/pass-0.6", "trials = 5\nthreshold = 0.6", 1);
        let code = place.run(&["run", "--seed", &seed.to_string()]).code;
        (place.summary()["targets"][0]["pass_count"].as_u64().unwrap(), code)
    };
    // A third of all seeds make exactly three of five trials pass.
    let codes: Vec<(u64, i32)> = (0..200).map(ran).take_while(|(passed, _)| *passed != 3).collect();
    let (passed, code) = ran(codes.len() as u32);
    assert_eq!((passed, code), (3, 0));
}

#[test]
fn the_same_seed_gives_the_same_results() {
    let outputs = |seed: &str| {
        let place = workplace("sim/pass-0.5", "trials = 3", 10);
        place.run(&["run", "--no-cache", "--seed", seed]);
        let trials = place.trials();
        assert_eq!(trials.len(), 30);
        trials.iter().map(|trial| trial["attempt"]["output"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(outputs("7"), outputs("7"));
    assert_ne!(outputs("7"), outputs("8"));
}

#[test]
fn filters_choose_cases_and_targets() {
    let ids = |arguments: &[&str]| {
        let place = workplace("sim/pass-1", "", 4);
        let ran = place.run(&[&["run"], arguments].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let trials = place.trials();
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
    let place = workplace("sim/pass-1", "", 4);
    let shown: Vec<String> = [&["--case", "c22"][..], &["--tag", "off"], &["--target", "two"]]
        .iter()
        .map(|arguments| place.run(&[&["run"], *arguments].concat()).shown())
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
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
    assert!(!place.path().join("runs").exists());
}

#[test]
fn bad_numbers_on_the_command_line_are_usage_errors() {
    let place = workplace("sim/pass-1", "", 1);
    for (arguments, code) in [
        (["--trials", "0"], "EVAL_INVALID_TRIALS_CONFIG"),
        (["--trials", "1001"], "EVAL_INVALID_TRIALS_CONFIG"),
        (["--threshold", "1.5"], "EVAL_INVALID_THRESHOLD"),
        (["--suite-threshold", "nan"], "EVAL_INVALID_THRESHOLD"),
    ] {
        let ran = place.run(&[&["run"], &arguments[..]].concat());
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains(code), "{arguments:?}\n{}", ran.stderr);
    }
}

#[test]
fn json_is_one_event_per_line_and_ends_with_the_verdict() {
    let place = workplace("sim/pass-0", "", 2);
    let ran = place.run(&["run", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
fn quiet_says_nothing() {
    let ran = workplace("sim/pass-0", "", 2).run(&["run", "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (1, "", ""));
}

#[test]
fn a_single_target_has_its_fields_at_the_top_of_the_summary() {
    let place = workplace("sim/pass-1", "", 2);
    place.run(&["run"]);
    let summary = place.summary();
    assert_eq!(summary["suite_pass"], true);
    assert_eq!(summary["total_cases"], 2);
    assert_eq!(summary["cases"], summary["targets"][0]["cases"]);
    let trial = place.run_folder().join("c1/trial-1");
    assert_eq!(std::fs::read_to_string(trial.join("stdout.txt")).unwrap(), "ok");
    for name in ["stderr.txt", "trace.jsonl", "result.json"] {
        assert!(trial.join(name).is_file(), "{name}");
    }
}

#[test]
fn artifacts_are_for_whom_they_are_wanted() {
    for (setting, expected) in [("all", 10), ("failures", 5), ("none", 0)] {
        let settings = format!("trials = 10\nthreshold = 0\nartifacts = \"{setting}\"");
        let place = workplace("sim/pass-0.5", &settings, 1);
        place.run(&["run", "--seed", "3"]);
        let failed = place.trials().iter().filter(|trial| trial["status"] == "failed").count();
        let case = place.run_folder().join("c1");
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
fn programs_get_the_prompt_and_are_judged() {
    let place = Workplace::with_suite(
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
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    let statuses: Vec<String> = place
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
    let script = &place.trials()[3]["attempt"];
    assert_eq!(script["output"], "hello script/hello/1\n");
    // It ran in a folder of its own, which is gone.
    let folder = script["stderr"].as_str().unwrap().trim();
    assert!(folder.contains("runs") && !std::path::Path::new(folder).exists(), "{folder}");
}

#[test]
fn a_program_without_checks_is_judged_by_its_exit_code() {
    let suite = |command: &str| {
        format!(
            "[[target]]\nname = \"p\"\ncommand = {command}\nprompt = \"\"\n[[cases.inline]]\nid = \"a\"\n"
        )
    };
    for (command, code) in [(r#"["true"]"#, 0), (r#"["false"]"#, 1)] {
        let place = Workplace::with_suite(&suite(command));
        let ran = place.run(&["run"]);
        assert_eq!(ran.code, code, "{command}\n{}", ran.shown());
    }
}

#[test]
fn answers_are_cached_for_whom_they_are_wanted() {
    for (setting, cached) in [("run", 0), ("shared", 3), ("none", 0)] {
        let place = workplace("sim/pass-1", &format!("cache = \"{setting}\""), 3);
        place.run(&["run", "--out", "first"]);
        place.run(&["run"]);
        assert_eq!(place.summary()["stats"]["cached"], cached, "{setting}");
        let kept = if setting == "none" {
            "0 answers"
        } else if setting == "run" {
            "6 answers of 2"
        } else {
            "3 answers of 1"
        };
        let stats = place.run(&["cache", "stats"]).stdout;
        assert!(stats.contains(kept), "{setting}: {stats}");
        place.run(&["cache", "clear"]);
        assert!(place.run(&["cache", "stats"]).stdout.contains("0 answers"));
    }
}

#[test]
fn a_cache_that_cannot_be_used_costs_a_warning_and_no_run() {
    let place = workplace("sim/pass-1", "", 1).write("cache", "a file where the folder should be");
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.stderr.contains("CACHE_UNAVAILABLE"), "{}", ran.stderr);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_internal_error() {
    let place = workplace("sim/pass-1", "", 1).write("runs", "a file where the folder should be");
    let ran = place.run(&["run"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""));
    assert!(ran.stderr.contains("cannot create runs"), "{}", ran.stderr);
}

#[test]
fn several_targets_over_http_share_one_run() {
    let provider = Provider::start(&[]);
    let place = Workplace::with_suite(&format!(
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
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(place.run_folder().join("messages/2/trial-1/result.json").is_file());
    let tokens = |target: usize| place.summary()["targets"][target]["usage"]["output"].clone();
    assert_eq!(tokens(0), tokens(1));
}

#[test]
fn the_schema_describes_the_file() {
    let ran = Workplace::new().run(&["schema"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["suite"]["properties"]["trials"]["maximum"], 1000);
    let kinds = schema["properties"]["check"]["items"]["oneOf"].as_array().unwrap();
    assert!(kinds.iter().any(|kind| kind["properties"]["kind"]["const"] == "regex"));
}

#[test]
fn a_run_that_was_killed_is_listed_as_unfinished() {
    let place = workplace("sim/pass-1", "", 3);
    place.run(&["run"]);
    let folder = place.run_folder();
    std::fs::remove_file(folder.join("summary.json")).unwrap();
    let journal = std::fs::read(folder.join("journal.jsonl")).unwrap();
    std::fs::write(folder.join("journal.jsonl"), &journal[..journal.len() - 5]).unwrap();
    assert!(place.run(&["list"]).stdout.contains("unfinished  2 trials"));
    let listed: Value = serde_json::from_str(&place.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(listed["trials"], 2);
}

#[test]
fn a_target_that_is_not_chosen_needs_no_key() {
    let place = workplace("sim/pass-1", "", 1);
    let suite = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    let other = "[[target]]\nname = \"real\"\nmodel = \"openai/gpt-4o-mini\"\nprompt = \"x\"\n";
    let place = place.write("bakeoff.toml", format!("{suite}{other}"));
    assert_eq!(place.run(&["run"]).code, 2);
    assert_eq!(place.run(&["run", "--target", "one"]).code, 0);
}

#[test]
fn unknown_prices_are_not_nothing() {
    let models = |model: &str| {
        format!(
            "[models.m]\nprovider = \"openai\"\nmodel = \"{model}\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
        )
    };
    let place = workplace("m", "", 1);
    let suite = std::fs::read_to_string(place.path().join("bakeoff.toml")).unwrap();
    let place = place.write("bakeoff.toml", format!("{}{suite}", models("gpt-4o-mini")));
    assert!(place.run(&["check"]).stdout.contains("estimated cost: unknown"));
}

#[test]
fn an_expected_value_that_is_empty_is_an_error_and_no_pass() {
    let place = Workplace::with_suite(
        "[[target]]\nname = \"a\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n[cases]\nfile = \"cases.csv\"\n[[check]]\nkind = \"contains\"\nvalue = \"{{ expected }}\"\n",
    )
    .write("cases.csv", "id,expected\na,x\nb,\n");
    assert_eq!(place.run(&["run"]).code, 3);
    let empty = &place.trials()[1];
    assert_eq!(empty["status"], "error");
    assert_eq!(empty["attempt"]["error"]["message"], "check `contains`: the value is empty");
}

#[test]
fn templates_may_use_what_minijinja_has() {
    let suite = suite("sim/pass-1", "").replace(
        "Is {{ thing }} good?",
        "{% for i in range(2) %}{{ i }}{% endfor %}{% if more is defined %}{{ more }}{% endif %}{{ other | default('-') }}{{ thing }}",
    );
    let place = Workplace::with_suite(&suite).write("cases.jsonl", cases(1));
    let ran = place.run(&["run"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}

#[test]
fn paths_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let place = workplace("sim/pass-1", "", 1);
    let odd = place.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    for name in ["bakeoff.toml", "cases.jsonl"] {
        std::fs::copy(place.path().join(name), odd.join(name)).unwrap();
    }
    let status = place.command(&["run", "--quiet"]).arg(&odd).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn data_that_cannot_be_written_is_an_error() {
    let place = workplace("sim/pass-1", "", 1);
    for arguments in [&["schema"][..], &["run", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
    }
}

#[test]
fn newer_runs_are_listed_first() {
    let place = workplace("sim/pass-1", "", 1);
    for _ in 0..5 {
        assert_eq!(place.run(&["run", "--quiet"]).code, 0);
    }
    let listed = place.run(&["list", "--json"]).stdout;
    let started: Vec<String> = listed
        .lines()
        .map(|line| {
            let run: Value = serde_json::from_str(line).unwrap();
            let path = place.path().join(run["run_dir"].as_str().unwrap()).join("run.json");
            let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            // Nine digits always, so that texts compare as times do.
            let (seconds, fraction) = run["started_at"].as_str().unwrap().split_once('.').unwrap();
            format!("{seconds}.{:0<9}", fraction.trim_end_matches('Z'))
        })
        .collect();
    assert_eq!(started.len(), 5);
    assert!(started.is_sorted_by(|one, other| one > other), "{started:?}");
}
