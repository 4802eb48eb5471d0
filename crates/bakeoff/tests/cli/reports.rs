//! `report`, `compare`, `score` and the export files.

use crate::support::TestDir;
use serde_json::Value;

/// Returns a suite with two targets: `sure` answers both cases correctly, `unsure` only the first.
fn suite(settings: &str) -> String {
    format!(
        r#"
[suite]
name = "capitals"
trials = 4
threshold = 0.5
{settings}
[sim.sure]
answers = [{{ when = "France", answer = "Paris" }}, {{ when = "Norway", answer = "Oslo" }}]
[sim.unsure]
answers = [{{ when = "France", answer = "Paris" }}, {{ when = "Norway", answer = "<Bergen> | `x`" }}]
[[target]]
name = "sure"
model = "sim/sure"
prompt = "Capital of {{{{ country }}}}?"
[[target]]
name = "unsure"
model = "sim/unsure"
prompt = "Capital of {{{{ country }}}}?"
[cases]
inline = [
  {{ id = "fr", country = "France", expected = "Paris" }},
  {{ id = "no", country = "Norway", expected = "Oslo" }},
]
[[check]]
kind = "contains"
value = "{{{{ expected }}}}"
"#
    )
}

/// Replaces what differs between runs: the run id, its directory and latencies.
fn normalized(text: &str, dir: &TestDir) -> String {
    let mut text = text.to_owned();
    for entry in std::fs::read_dir(dir.path().join("runs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        text = text.replace(&name, "RUN");
    }
    // Latencies depend on the machine.
    let is_latency = |word: &str| word.parse::<f64>().is_ok();
    text.lines()
        .map(|line| {
            // So does the ratio of two latencies.
            let end = if line.starts_with("latency") { line.find(", ×") } else { None };
            let words: Vec<&str> = line[..end.unwrap_or(line.len())].split(' ').collect();
            let printed = words.iter().enumerate().map(|(index, word)| {
                let is_time = words.get(index + 1).is_some_and(|next| *next == "ms");
                if is_time && is_latency(word) { "0" } else { word }
            });
            printed.collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn report_repeats_the_output_of_the_run() {
    let dir = TestDir::with_suite(&suite(""));
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 1, "{}", run.transcript());
    let report = dir.run(&["report"]);
    assert_eq!(report.code, 0, "{}", report.transcript());
    let (printed, verdict) = run.stdout.split_once("\nverdict:").unwrap();
    assert!(report.stdout.starts_with(printed), "{}", report.transcript());
    assert!(report.stdout.ends_with(&format!("\nverdict:{verdict}")), "{}", report.transcript());
    insta::assert_snapshot!(normalized(&report.stdout, &dir), @r#"
    target  verdict  pass rate  95 % interval  cases  errors   p50   p95  tokens   cost
    sure    passed       100 %   16 % – 100 %    2/2       0  0 ms  0 ms      52  $0.00
    unsure  FAILED        50 %     1 % – 99 %    1/2       0  0 ms  0 ms      64  $0.00

    sure: pass@4 100 % (0 % – 100 %), pass^4 100 % (0 % – 100 %)
    unsure: pass@4 50 % (0 % – 100 %), pass^4 50 % (0 % – 100 %)
    2 cases are few: intervals are not ensured to cover 95 % below 10 cases; add cases, not trials

    failed  unsure / no (4 trials): contains: no "Oslo" in "<Bergen> | `x`"

    target  check     passed  pass rate
    sure    contains     8/8      100 %
    unsure  contains     4/8       50 %

    verdict: failed: unsure: 1 of 2 cases pass, needs 2 (a case passes with 2 of 4 trials)
    "#);
    // The journal suffices for a report.
    let folder = dir.run_folder();
    let summary = std::fs::read(folder.join("summary.json")).unwrap();
    std::fs::remove_file(folder.join("summary.json")).unwrap();
    let killed = dir.run(&["report"]);
    let without_clock = |text: &str| text.replace("0 ms", "–");
    assert_eq!(without_clock(&killed.stdout), without_clock(&report.stdout));
    assert!(killed.stderr.contains("bakeoff run --resume"), "{}", killed.stderr);
    let json = dir.run(&["report", "--json"]).done();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(json["summary"]["targets"], summary["targets"]);
}

#[test]
fn markdown_folds_failures() {
    let dir = TestDir::with_suite(&suite(""));
    let step = dir.path().join("step.md");
    let mut command = dir.command(&["run", "--markdown", "run.md", "--quiet"]);
    command.env("GITHUB_STEP_SUMMARY", &step).output().unwrap();
    let page = std::fs::read_to_string(dir.path().join("run.md")).unwrap();
    assert_eq!(std::fs::read_to_string(step).unwrap(), page, "a step's summary is found");
    insta::assert_snapshot!(normalized(&page, &dir), @r#"
    ## capitals: ❌ failed

    unsure: 1 of 2 cases pass, needs 2 (a case passes with 2 of 4 trials)

    | target | verdict | pass rate | 95 % interval | cases | flaky | errors | p50 | cost |
    |---|---|---:|---:|---:|---:|---:|---:|---:|
    | sure | ✅ passed | 100 % | 16 % – 100 % | 2/2 | 0 | 0 | 0 ms | $0.00 |
    | unsure | ❌ failed | 50 % | 1 % – 99 % | 1/2 | 0 | 0 | 0 ms | $0.00 |

    <details>
    <summary>unsure: 1 case did not pass</summary>

    | case | status | trials passed | why |
    |---|---|---:|---|
    | no | failed | 0/4 | contains: no "Oslo" in "&lt;Bergen&gt; \| \`x\`" |

    </details>

    <sub>RUN</sub>
    "#);
}

#[test]
fn junit_has_a_test_per_case_and_one_per_verdict() {
    let dir = TestDir::with_suite(&suite("")).write("out", "");
    dir.run(&["run", "--junit", "run.xml", "--quiet"]);
    let xml = std::fs::read_to_string(dir.path().join("run.xml")).unwrap();
    let time = |text: &str| {
        let parts = text.split("time=\"").enumerate().map(|(number, part)| match number {
            0 => part.to_owned(),
            _ => format!("time=\"0\"{}", part.split_once('"').unwrap().1),
        });
        parts.collect::<String>()
    };
    insta::assert_snapshot!(time(&xml), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="capitals" tests="6" failures="2" errors="0" time="0">
        <testsuite name="capitals/sure" tests="3" disabled="0" errors="0" failures="0" time="0">
            <testcase name="verdict" classname="capitals.sure">
                <system-out>passed: 2 of 2 cases pass, needs 2 (a case passes with 2 of 4 trials)</system-out>
            </testcase>
            <testcase name="fr" classname="capitals.sure" time="0">
            </testcase>
            <testcase name="no" classname="capitals.sure" time="0">
            </testcase>
        </testsuite>
        <testsuite name="capitals/unsure" tests="3" disabled="0" errors="0" failures="2" time="0">
            <testcase name="verdict" classname="capitals.unsure">
                <failure message="failed: 1 of 2 cases pass, needs 2 (a case passes with 2 of 4 trials)" type="failed"/>
            </testcase>
            <testcase name="fr" classname="capitals.unsure" time="0">
            </testcase>
            <testcase name="no" classname="capitals.unsure" time="0">
                <failure message="0 of 4 trials passed: trial 1: contains: no &quot;Oslo&quot; in &quot;&lt;Bergen&gt; | `x`&quot;" type="failed"/>
                <rerunFailure message="trial 1: contains: no &quot;Oslo&quot; in &quot;&lt;Bergen&gt; | `x`&quot;" type="failed">
                    <system-out>&lt;Bergen&gt; | `x`</system-out>
                </rerunFailure>
                <rerunFailure message="trial 2: contains: no &quot;Oslo&quot; in &quot;&lt;Bergen&gt; | `x`&quot;" type="failed">
                    <system-out>&lt;Bergen&gt; | `x`</system-out>
                </rerunFailure>
                <rerunFailure message="trial 3: contains: no &quot;Oslo&quot; in &quot;&lt;Bergen&gt; | `x`&quot;" type="failed">
                    <system-out>&lt;Bergen&gt; | `x`</system-out>
                </rerunFailure>
                <rerunFailure message="trial 4: contains: no &quot;Oslo&quot; in &quot;&lt;Bergen&gt; | `x`&quot;" type="failed">
                    <system-out>&lt;Bergen&gt; | `x`</system-out>
                </rerunFailure>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn csv_and_jsonl_have_a_row_per_trial() {
    let dir = TestDir::with_suite(&suite(""));
    dir.run(&["run", "--quiet"]);
    let report = dir.run(&["report", "--csv", "rows.csv", "--jsonl", "rows.jsonl"]);
    assert_eq!(report.code, 0, "{}", report.transcript());
    let csv = std::fs::read_to_string(dir.path().join("rows.csv")).unwrap();
    assert_eq!(csv.lines().count(), 17);
    let header = csv.lines().next().unwrap();
    assert!(header.starts_with("target,case,trial,status,score,"), "{header}");
    assert!(csv.contains("unsure,no,1,failed,0,"), "{csv}");
    let jsonl = std::fs::read_to_string(dir.path().join("rows.jsonl")).unwrap();
    let mut rows: Vec<Value> =
        jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["key"].to_string());
    let mut trials = dir.trials();
    trials.sort_by_key(|row| row["key"].to_string());
    assert_eq!(rows.len(), trials.len());
    for (row, mut trial) in rows.into_iter().zip(trials) {
        trial["prompt"] = row["prompt"].clone();
        trial["case"] = row["case"].clone();
        assert_eq!(row, trial);
        assert_eq!(row["case"]["id"], row["key"]["case"]);
    }
    let nowhere = dir.run(&["report", "--csv", "no/such/folder.csv"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.transcript());
}

#[test]
fn ci_run_prints_github_annotations() {
    let dir = TestDir::with_suite(&suite(""));
    let mut command = dir.command(&["run", "--ci"]);
    let output = command.env("GITHUB_ACTIONS", "true").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let marks: Vec<&str> = stdout.lines().filter(|line| line.starts_with("::")).collect();
    insta::assert_snapshot!(marks.join("\n"), @r#"::warning title=capitals::failed  unsure / no (4 trials): contains: no "Oslo" in "<Bergen> | `x`""#);
}

#[test]
fn compare_takes_targets_of_one_run_or_two_runs() {
    let dir = TestDir::with_suite(&suite(""));
    dir.run(&["run", "--quiet"]);
    let within = dir.run(&["compare", "last"]);
    assert_eq!(within.code, 0, "{}", within.transcript());
    insta::assert_snapshot!(normalized(&within.stdout, &dir), @r#"
    baseline   sure (RUN)
    candidate  unsure (RUN)
    pass rate over 2 cases: 100.0 % → 50.0 %, -50.0 points (95 % interval -97.5 to +92.6 points)
    no difference found (McNemar, exact, p = 1.0000)
    cases: 0 better, 1 worse
    effect size d_z: -0.71
    detecting a difference of 5.0 points requires about 1568 cases
    cost per trial: $0.00 → $0.00
    tokens per trial: 7 → 8, × 1.23
    latency p50: 0 ms → 0 ms
      no: 100.0 % → 0.0 %
    "#);
    let name = dir.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    dir.run(&["run", "--quiet"]);
    let between = dir.run(&["compare", &format!("{name}:sure"), "last:sure", "--within", "0.1"]);
    insta::assert_snapshot!(normalized(&between.stdout, &dir), @r#"
    baseline   sure (RUN)
    candidate  sure (RUN)
    pass rate over 2 cases: 100.0 % → 100.0 %, +0.0 points (95 % interval -77.6 to +77.6 points)
    no difference found (McNemar, exact, p = 1.0000)
    cases: 0 better, 0 worse
    not shown to be equal within 10.0 points (by the interval)
    cost per trial: $0.00 → $0.00
    tokens per trial: 7 → 7, × 1.00
    latency p50: 0 ms → 0 ms
    "#);
    let wrong = dir.run(&["compare", "last:sur", "last:unsure"]);
    assert!(wrong.stderr.contains("did you mean `sure`?"), "{}", wrong.stderr);
}

#[test]
fn only_a_significant_regression_fails() {
    let many: String =
        (0..12).map(|n| format!("{{\"id\": \"c{n}\", \"thing\": \"t{n}\"}}\n")).collect();
    let suite = |model: &str| {
        format!(
            "[suite]\nname = \"r\"\n[[target]]\nname = \"t\"\nmodel = \"{model}\"\nprompt = \"{{{{ thing }}}}\"\n\
             [cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
        )
    };
    let dir = TestDir::with_suite(&suite("sim/pass-1")).write("cases.jsonl", &many);
    dir.run(&["run", "--quiet"]);
    let good = dir.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    let dir = dir.write("bakeoff.toml", suite("sim/pass-0"));
    dir.run(&["run", "--quiet"]);
    let compare = |words: &[&str]| {
        let output = dir.run(&[&["compare", "--fail-on-regression"], words].concat());
        (output.code, output.stdout)
    };
    let (code, stdout) = compare(&[&good, "last"]);
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains("the candidate is worse (McNemar, exact, p = 0.0005)"), "{stdout}");
    assert_eq!(compare(&["last", &good]).0, 0, "better is no regression");
    assert_eq!(compare(&[&good, &good]).0, 0);
}

#[test]
fn score_repeats_checks_on_stored_outputs() {
    let dir = TestDir::with_suite(&suite(""));
    dir.run(&["run", "--quiet"]);
    let run = dir.run_folder();
    let before = std::fs::read(run.join("summary.json")).unwrap();
    // The new check accepts Bergen too.
    let text = suite("").replace(
        "kind = \"contains\"\nvalue = \"{{ expected }}\"",
        "kind = \"regex\"\nvalue = \"{{ expected }}|Bergen\"",
    );
    let dir = dir.write("bakeoff.toml", text);
    let scored = dir.run(&["score", "--json"]);
    assert_eq!(scored.code, 0, "{}", scored.transcript());
    let summary = scored.done()["summary"].clone();
    assert_eq!(summary["verdict"], "passed");
    assert_eq!(summary["targets"][1]["passed"], 2);
    assert_eq!(std::fs::read(run.join("summary.json")).unwrap(), before, "the run is unchanged");
    let id = summary["run_id"].as_str().unwrap();
    let file = std::fs::read(dir.path().join("runs").join(id).join("run.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(file["scored_from"], run.file_name().unwrap().to_str().unwrap());
    // Unchanged checks give the same result.
    let again = dir.run(&["score", id, "--json"]).done();
    assert_eq!(again["summary"]["targets"], summary["targets"]);
    let gone = suite("").replace("id = \"no\"", "id = \"nor\"");
    let dir = dir.write("bakeoff.toml", gone);
    let runs = || std::fs::read_dir(dir.path().join("runs")).unwrap().count();
    let before = runs();
    let rejected = dir.run(&["score", id]);
    assert_eq!(rejected.code, 2, "{}", rejected.transcript());
    assert_eq!(runs(), before, "no run is created");
    assert!(rejected.stderr.contains("the suite has no case `no` any more"), "{}", rejected.stderr);
}

/// Common JUnit schema of Jenkins, GitLab and Surefire: element, parent and attributes; a star marks
/// required ones.
const JUNIT: [(&str, &str, &str); 13] = [
    ("testsuites", "", "name time tests failures disabled errors uuid timestamp"),
    ("testsuite", "testsuites", "name* tests* failures* errors* disabled skipped time timestamp"),
    ("testcase", "testsuite", "name* classname time assertions timestamp"),
    ("failure", "testcase", "message type*"),
    ("error", "testcase", "message type*"),
    ("skipped", "testcase", "message type"),
    ("flakyFailure", "testcase", "message type* timestamp time"),
    ("flakyError", "testcase", "message type* timestamp time"),
    ("rerunFailure", "testcase", "message type* timestamp time"),
    ("rerunError", "testcase", "message type* timestamp time"),
    ("system-out", "flakyFailure flakyError rerunFailure rerunError testcase testsuite", ""),
    ("system-err", "flakyFailure flakyError rerunFailure rerunError testcase testsuite", ""),
    ("stackTrace", "flakyFailure flakyError rerunFailure rerunError", ""),
];

/// Checks XML against the table and counts each element.
fn count_junit_elements(xml: &str) -> std::collections::BTreeMap<String, usize> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut open: Vec<String> = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    loop {
        let event = reader.read_event().unwrap();
        let (Event::Start(element) | Event::Empty(element)) = &event else {
            match event {
                Event::End(_) => drop(open.pop()),
                Event::Eof => return counts,
                _ => {}
            }
            continue;
        };
        let name = String::from_utf8(element.name().as_ref().to_vec()).unwrap();
        let parent = open.last().cloned().unwrap_or_default();
        let known = JUNIT.iter().find(|(known, ..)| *known == name);
        let (_, parents, attributes) = known.unwrap_or_else(|| panic!("<{name}> is not known"));
        let is_root = parents.is_empty() && parent.is_empty();
        assert!(
            is_root || parents.split(' ').any(|known| known == parent),
            "<{name}> in <{parent}>"
        );
        let found: Vec<String> = element
            .attributes()
            .map(|attribute| String::from_utf8(attribute.unwrap().key.as_ref().to_vec()).unwrap())
            .collect();
        for attribute in &found {
            let is_known = |known: &str| known.trim_end_matches('*') == attribute;
            assert!(attributes.split(' ').any(is_known), "{attribute} of <{name}>");
        }
        for required in attributes.split(' ').filter_map(|known| known.strip_suffix('*')) {
            assert!(found.iter().any(|attribute| attribute == required), "<{name}> {required}");
        }
        *counts.entry(name.clone()).or_default() += 1;
        if matches!(event, Event::Start(_)) {
            open.push(name);
        }
    }
}

#[test]
fn junit_matches_the_schema_and_separates_flaky_failed_and_errored() {
    let dir = TestDir::with_suite(
        r#"
[suite]
name = "all kinds"
trials = 8
threshold = 0.3
[sim.bad]
default = "control \u0007 and <tag>"
[[target]]
name = "flaky"
model = "sim/pass-0.5"
prompt = "{{ id }}"
[[target]]
name = "broken"
model = "sim/fault-400"
prompt = "{{ id }}"
[[target]]
name = "bad"
model = "sim/bad"
prompt = "{{ id }}"
[cases]
inline = [{ id = "a" }, { id = "b" }]
[[check]]
kind = "equals"
value = "ok"
"#,
    );
    dir.run(&["run", "--junit", "run.xml", "--quiet", "--seed", "1"]);
    let xml = std::fs::read_to_string(dir.path().join("run.xml")).unwrap();
    let counts = count_junit_elements(&xml);
    let count = |name: &str| counts.get(name).copied().unwrap_or_default();
    assert_eq!((count("testsuite"), count("testcase")), (3, 9), "{xml}");
    assert_eq!((count("failure"), count("error")), (3, 3), "{xml}");
    assert!(count("flakyFailure") >= 2, "{xml}");
    assert_eq!(count("rerunError"), 16, "{xml}");
    assert!(xml.contains(r#"failures="3" errors="3""#), "{xml}");
}

#[test]
fn unpaired_cases_are_listed_on_the_correct_side() {
    let suite = |models: &str| {
        format!(
            "[suite]\nname = \"u\"\n{models}[cases]\ninline = [{{ id = \"a\" }}, {{ id = \"b\" }}]\n\
             [[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
        )
    };
    let target = |name: &str, model: &str| {
        format!("[[target]]\nname = \"{name}\"\nmodel = \"{model}\"\nprompt = \"{{{{ id }}}}\"\n")
    };
    let dir = TestDir::with_suite(&suite(&target("good", "sim/pass-1")));
    dir.run(&["run", "--quiet", "--case", "a"]);
    let first = dir.run_folder().file_name().unwrap().to_str().unwrap().to_owned();
    dir.run(&["run", "--quiet"]);
    let render = |words: &[&str]| dir.run(&[&["compare"], words].concat()).stdout;
    let more = render(&[&first, "last"]);
    assert!(more.contains("omitted, judged in the candidate only: 1 (b)"), "{more}");
    let fewer = render(&["last", &first]);
    assert!(fewer.contains("omitted, judged in the baseline only: 1 (b)"), "{fewer}");
}

#[test]
fn case_id_is_escaped_in_annotations() {
    let dir = TestDir::with_suite(&suite("").replace("id = \"no\"", "id = \"n\\n::error::o\""));
    let mut command = dir.command(&["run", "--ci"]);
    let output = command.env("GITHUB_ACTIONS", "true").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("n ::error::o"), "{stdout}");
    assert!(!stdout.lines().any(|line| line.starts_with("::error::o")), "{stdout}");
}

#[test]
fn targets_without_a_gate_count_if_there_are_no_others() {
    let dir = TestDir::with_suite(
        &suite("").replace("name = \"unsure\"", "name = \"unsure\"\ngate = false"),
    );
    assert_eq!(dir.run(&["run", "--quiet", "--junit", "all.xml"]).code, 0);
    // A target without a gate does not fail the run.
    let xml = std::fs::read_to_string(dir.path().join("all.xml")).unwrap();
    assert!(xml.contains("failures=\"0\"") && xml.contains("does not gate"), "{xml}");
    assert_eq!(dir.run(&["run", "--quiet", "--target", "unsure"]).code, 1);
}
