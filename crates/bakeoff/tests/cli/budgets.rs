//! Budgets: limits of cost and tokens for all jobs, at any concurrency.

use crate::services::Server;
use crate::support::{Provider, TestDir, profiled, stats};
use serde_json::{Value, json};

/// Returns a suite whose model costs $0.20 per call: one prompt token at $0.20.
fn suite(base_url: &str, settings: &str) -> String {
    format!(
        r#"
[suite]
name = "budget"
cache = "none"
{settings}
[models.priced]
provider = "openai"
model = "sim/echo"
base_url = "{base_url}"
prices = {{ input = 200000.0, output = 0.0 }}
[models.mapper]
provider = "openai"
model = "sim/map"
base_url = "{base_url}"
prices = {{ input = 1000.0, output = 1000.0 }}
[models.unpriced]
provider = "openai"
model = "unknown"
base_url = "{base_url}"
[[target]]
name = "one"
model = "priced"
prompt = "{{{{ thing }}}}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "{{{{ thing }}}}"
"#
    )
}

fn cases(count: usize) -> String {
    (0..count).map(|n| format!("{{\"id\": \"c{n}\", \"thing\": \"t{n}\"}}\n")).collect()
}

fn provider(dir: &TestDir) -> Provider {
    profiled(dir.path(), "latency = { kind = \"uniform\", min_ms = 30, max_ms = 90 }")
}

/// Returns the number of calls that the provider answered.
fn answered(provider: &Provider) -> u64 {
    stats(provider)["answered"].as_u64().unwrap()
}

#[test]
fn run_stays_within_its_cost_budget_at_any_concurrency() {
    for connections in ["1", "10", "100", "400"] {
        let dir = TestDir::new();
        let provider = provider(&dir);
        let settings = "max_cost_usd = 1.0";
        let dir = dir
            .write("bakeoff.toml", suite(&provider.base_url, settings))
            .write("cases.jsonl", cases(500));
        let run = dir.run(&["run", "--max-connections", connections]);
        assert_eq!(run.code, 3, "{}", run.transcript());
        assert_eq!(answered(&provider), 5, "with {connections} connections");
        let message = "$1.00 of $1.00 spent [EVAL_BUDGET_USED_UP]";
        assert!(run.stderr.contains(message), "{}", run.stderr);
        let target = &dir.summary()["targets"][0];
        assert_eq!((&target["counted"], &target["errors"]), (&5.into(), &0.into()));
        // A larger budget continues the run.
        let resumed = dir.run(&["run", "--resume", "last", "--max-cost", "1.5"]);
        assert_eq!(resumed.code, 3, "{}", resumed.transcript());
        assert_eq!(answered(&provider), 7, "{}", resumed.transcript());
    }
}

#[test]
fn select_stays_within_its_cost_budget() {
    let dir = TestDir::new();
    let provider = provider(&dir);
    let search = r#"
[models.other]
provider = "openai"
model = "sim/other"
base_url = "URL"
prices = { input = 200000.0, output = 0.0 }
[select]
method = "brute_force"
[select.roles]
solver = ["priced", "other"]
"#
    .replace("URL", &provider.base_url);
    let suite =
        suite(&provider.base_url, "").replace("model = \"priced\"", "model = \"role/solver\"");
    let dir = dir.write("bakeoff.toml", suite + &search).write("cases.jsonl", cases(100));
    let found = dir.run(&["select", "--max-cost", "1", "--json"]);
    assert_eq!(found.code, 3, "{}", found.transcript());
    let answered = answered(&provider);
    assert!((3..=5).contains(&answered), "{answered} calls\n{}", found.transcript());
    let spent = found.done()["selection"]["selection"]["spent"].as_f64().unwrap();
    assert!((spent - 0.2 * answered as f64).abs() < 1e-9, "{}", found.stdout);
}

#[test]
fn map_and_race_stay_within_their_cost_limits() {
    let dir = TestDir::new();
    let provider = provider(&dir);
    let task = "instructions = \"Repeat the item.\"\n[output]\nanswer = { type = \"string\" }\n";
    let rows: String = (0..500).map(|n| format!("{{\"item\": \"t{n}\"}}\n")).collect();
    let dir = dir
        .write("bakeoff.toml", suite(&provider.base_url, ""))
        .write("cases.jsonl", cases(1))
        .write("task.toml", task)
        .write("rows.jsonl", rows);
    let map = [
        "map",
        "rows.jsonl",
        "--task",
        "task.toml",
        "--model",
        "mapper",
        "--suite",
        ".",
        "--out",
        "out.jsonl",
        "--max-cost",
        "10",
        "--pack",
        "1",
        "--max-connections",
        "100",
    ];
    let mapped = dir.run(&map);
    assert_eq!(mapped.code, 3, "{}", mapped.transcript());
    let usage = stats(&provider);
    let tokens = usage["input_tokens"].as_f64().unwrap() + usage["output_tokens"].as_f64().unwrap();
    let spent = tokens / 1000.0;
    assert!((8.0..=10.2).contains(&spent), "{spent}\n{}", mapped.transcript());

    let before = answered(&provider);
    let race = [
        "race",
        "t1",
        "--model",
        "priced",
        "--samples",
        "20",
        "--strategy",
        "cheapest",
        "--suite",
        ".",
        "--max-cost",
        "1",
    ];
    let raced = dir.run(&race);
    assert_eq!(answered(&provider) - before, 5, "{}", raced.transcript());
    assert!(raced.transcript().contains("$1.00 of $1.00 spent"), "{}", raced.transcript());
}

#[test]
fn unknown_price_is_rejected_before_any_call() {
    let dir = TestDir::new();
    let provider = provider(&dir);
    let unpriced = |text: String| text.replace("model = \"priced\"", "model = \"unpriced\"");
    let select = "[select.roles]\nsolver = [\"priced\", \"unpriced\"]\n";
    let dir = dir
        .write("bakeoff.toml", unpriced(suite(&provider.base_url, "max_cost_usd = 1.0")))
        .write("cases.jsonl", cases(3))
        .write(
            "task.toml",
            "instructions = \"Repeat the item.\"\n[output]\nanswer = { type = \"string\" }\n",
        )
        .write("rows.jsonl", "{\"item\": \"t\"}\n");
    let role =
        suite(&provider.base_url, "").replace("\"priced\"\nprompt", "\"role/solver\"\nprompt");
    let searched = TestDir::with_suite(&(role + select)).write("cases.jsonl", cases(3));
    let map = [
        "map",
        "rows.jsonl",
        "--task",
        "task.toml",
        "--model",
        "unpriced",
        "--suite",
        ".",
        "--out",
        "out.jsonl",
        "--max-cost",
        "1",
    ];
    let race = [
        "race",
        "t",
        "--model",
        "unpriced",
        "--model",
        "priced",
        "--suite",
        ".",
        "--max-cost",
        "1",
        "--strategy",
        "cheapest",
    ];
    let outputs = [
        dir.run(&["run"]),
        searched.run(&["select", "--max-cost", "1"]),
        dir.run(&map),
        dir.run(&race),
    ];
    for output in outputs {
        assert_eq!(output.code, 2, "{}", output.transcript());
        assert!(output.stderr.contains("no price known for"), "{}", output.stderr);
        assert!(output.stderr.contains("prices"), "{}", output.stderr);
    }
    assert_eq!(answered(&provider), 0);
}

/// Returns a folder with a persistent worker that reports this usage.
fn worker(settings: &str, keys: &str, usage: &str) -> TestDir {
    let program = format!(
        "import json, sys\nfor line in sys.stdin:\n    id = json.loads(line)['id']\n    print(json.dumps({{'id': id, 'output': 'ok', {usage}}}), flush=True)\n"
    );
    let suite = format!(
        "[suite]\n{settings}\n[models.small]\nprovider = \"openai\"\nmodel = \"small\"\nprices = {{ input = 100000.0, output = 200000.0 }}\n[[target]]\nname = \"w\"\ncommand = [\"python3\", \"worker.py\"]\nprotocol = \"jsonl\"\nprompt = \"p\"\n{keys}\n[cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
    );
    TestDir::with_suite(&suite).write("worker.py", program).write("cases.jsonl", cases(50))
}

fn counted(dir: &TestDir) -> u64 {
    dir.summary()["targets"][0]["counted"].as_u64().unwrap()
}

#[test]
fn budget_limits_programs_that_report_their_usage() {
    let reported = "'usage': {'input_tokens': 1, 'output_tokens': 1, 'cost_usd': 0.25}";
    let dir = worker("max_cost_usd = 1.0", "", reported);
    assert_eq!(dir.run(&["run"]).code, 3);
    assert_eq!(counted(&dir), 4);
    // $0.10 for the prompt token and $0.20 for the answer.
    let tokens = "'usage': {'input_tokens': 1, 'output_tokens': 1}";
    let dir = worker("max_cost_usd = 1.0", "priced_as = \"small\"", tokens);
    assert_eq!(dir.run(&["run"]).code, 3);
    assert_eq!(counted(&dir), 3);
    let cost = &dir.summary()["targets"][0]["cost_nanodollars"];
    assert_eq!(cost, &Value::from(900_000_000));
    let dir = worker("max_tokens = 9", "", tokens);
    assert_eq!(dir.run(&["run"]).code, 3);
    assert_eq!(counted(&dir), 4);
}

#[test]
fn unreported_cost_ends_a_run_with_a_budget() {
    let dir = worker("max_cost_usd = 1.0", "", "'events': []");
    let run = dir.run(&["run"]);
    assert_eq!(run.code, 3, "{}", run.transcript());
    assert!(run.stderr.contains("`w` reported no cost, which the budget needs"), "{}", run.stderr);
    assert!(run.stderr.contains("trial_cost_usd"), "{}", run.stderr);
    assert_eq!(counted(&dir), 1);
    let dir = worker("max_cost_usd = 1.0", "trial_cost_usd = 0", "'events': []");
    let run = dir.run(&["run"]);
    assert_eq!((run.code, counted(&dir)), (0, 50), "{}", run.transcript());
}

#[test]
fn program_without_known_cost_is_rejected_under_a_budget() {
    let suite = |settings: &str, keys: &str| {
        format!(
            "[suite]\n{settings}\n[[target]]\nname = \"p\"\ncommand = [\"cat\"]\nprompt = \"x\"\n{keys}\n[cases]\nfile = \"cases.jsonl\"\n[[check]]\nkind = \"equals\"\nvalue = \"x\"\n"
        )
    };
    let run = |settings: &str, keys: &str| {
        let dir = TestDir::with_suite(&suite(settings, keys)).write("cases.jsonl", cases(2));
        (dir.run(&["run"]), dir)
    };
    let (output, dir) = run("max_cost_usd = 1.0", "");
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("the cost of `p` is unknown"), "{}", output.stderr);
    assert!(output.stderr.contains("trial_cost_usd"), "{}", output.stderr);
    assert!(!dir.path().join("runs").exists());
    let (output, _) = run("max_tokens = 10", "");
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("`p` does not report its tokens"), "{}", output.stderr);
    let (output, dir) = run("max_cost_usd = 1.0", "trial_cost_usd = 0.6");
    assert_eq!((output.code, counted(&dir)), (3, 1), "{}", output.transcript());
}

#[test]
fn replies_without_usage_count_at_their_expected_cost() {
    let server = Server::start(|_, _| {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": "t"}, "finish_reason": "stop"});
        (200, "", json!({"id": "1", "object": "chat.completion", "choices": [choice]}).to_string())
    });
    let base_url = server.url.replace("/ask?key=secret-in-the-query", "/v1");
    let priced = suite(&base_url, "max_cost_usd = 1.0").replace("output = 0.0", "output = 1000.0");
    let dir = TestDir::new().write("bakeoff.toml", priced).write("cases.jsonl", cases(100));
    let run = dir.run(&["run"]);
    // One prompt token for $0.20 and 200 expected answer tokens for $0.20. The answers are wrong.
    assert_eq!(run.code, 1, "{}", run.transcript());
    let target = &dir.summary()["targets"][0];
    assert_eq!((&target["counted"], &target["unpriced"]), (&2.into(), &2.into()));
}

/// Returns a suite with a model that costs $0.20 per answer of the maximum length, and whose replies are malformed.
fn malformed_suite(server: &Server) -> String {
    format!(
        r#"
[suite]
cache = "none"
parallel = 1
[models.priced]
provider = "openai"
model = "m"
base_url = "{}"
prices = {{ input = 0.0, output = 1000.0 }}
[[target]]
name = "one"
model = "priced"
max_tokens = 200
prompt = "{{{{ thing }}}}"
[cases]
file = "cases.jsonl"
[[check]]
kind = "equals"
value = "{{{{ thing }}}}"
"#,
        server.origin()
    )
}

fn start_malformed() -> Server {
    Server::start(|_, _| (200, "content-type: application/json\r\n", "{\"choices\": 1}".to_owned()))
}

#[test]
fn resumed_run_counts_malformed_replies_of_the_first_process() {
    let server = start_malformed();
    let dir = TestDir::with_suite(&malformed_suite(&server)).write("cases.jsonl", cases(20));
    let run = dir.run(&["run", "--max-cost", "1"]);
    assert_eq!(run.code, 3, "{}", run.transcript());
    assert_eq!(server.requests().len(), 5, "{}", run.transcript());
    let resumed = dir.run(&["run", "--resume", "last", "--max-cost", "1"]);
    assert_eq!(resumed.code, 3, "{}", resumed.transcript());
    assert_eq!(server.requests().len(), 5, "{}", resumed.transcript());
    let resumed = dir.run(&["run", "--resume", "last", "--max-cost", "1.4"]);
    assert_eq!(server.requests().len(), 7, "{}", resumed.transcript());
}

#[test]
fn map_counts_malformed_replies_and_remembers_them() {
    let server = start_malformed();
    let rows: String = (0..20).map(|n| format!("{{\"item\": \"t{n}\"}}\n")).collect();
    let task = "instructions = \"Repeat the item.\"\nmax_tokens = 200\n[output]\nanswer = { type = \"string\" }\n";
    let dir = TestDir::with_suite(&malformed_suite(&server))
        .write("cases.jsonl", cases(1))
        .write("task.toml", task)
        .write("rows.jsonl", rows);
    let map = |cost: &str| {
        let words =
            ["map", "rows.jsonl", "--task", "task.toml", "--model", "priced", "--suite", "."];
        let limits = ["--out", "out.jsonl", "--pack", "1", "--max-cost", cost, "--json"];
        dir.run(&[&words[..], &limits].concat())
    };
    let first = map("1");
    assert_eq!(first.code, 3, "{}", first.transcript());
    let calls = server.requests().len();
    let spent = first.done()["cost_nanodollars"].as_i64().unwrap();
    assert!(spent > 0 && spent <= 1_000_000_000, "{spent}\n{}", first.transcript());
    let again = map("1");
    let more = server.requests().len() - calls;
    let total = again.done()["cost_nanodollars"].as_i64().unwrap();
    assert!(total >= spent && total <= 1_000_000_000, "{total} {more}\n{}", again.transcript());
}
