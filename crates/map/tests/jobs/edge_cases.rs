//! Tests of edge cases: oversized rows, empty inputs, missing fields, and models that never give a valid
//! answer.

use crate::support::{JobFixture, model};
use bakeoff_core::{NanoDollars, Prices};
use bakeoff_map::{Field, FieldType, PackSize, ReplyFormat, ShownField, StopReason};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn large_row_gets_its_own_request_and_oversized_row_is_an_error() {
    let row = |length: usize| json!({ "text": "x".repeat(length) }).to_string();
    let rows = [row(10), row(10), row(9000), row(50_000), row(10)].join("\n");
    let mut job = JobFixture::with_input("rows.jsonl", &rows, "map");
    job.config.task.max_tokens_per_request = 2000;
    job.config.task.context_tokens = Some(10_000);
    let outcome = job.run().await;
    // Two rows together, the large row, and the last row.
    assert_eq!((outcome.progress.requests, outcome.progress.errors), (3, 1));
    let out = job.rows();
    assert_eq!(out.len(), 5);
    assert_eq!(out[2]["copy"], out[2]["text"]);
    let error = out[3]["error"].as_str().unwrap();
    assert!(error.starts_with("the row is too large: it needs about 12"), "{error}");
    assert!(error.ends_with("and a request may have 10000"), "{error}");
    assert_eq!(out[3]["text"].as_str().unwrap().len(), 50_000);
    // If `show` shortens the field, the row can be sent; the output has the whole field.
    job.config.force = true;
    job.config.task.show =
        Some(vec![ShownField { field: "text".to_owned(), max_chars: Some(100) }]);
    let outcome = job.run().await;
    assert_eq!((outcome.progress.requests, outcome.progress.errors), (1, 0));
    assert_eq!(job.rows()[3]["copy"].as_str().unwrap().chars().count(), 101);
    assert_eq!(job.rows()[3]["text"].as_str().unwrap().len(), 50_000);
}

#[tokio::test(start_paused = true)]
async fn huge_row_does_not_affect_the_pack_size() {
    let rows: String = (0..99).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
    let huge = json!({ "text": "x".repeat(4_000_000) });
    let mut job = JobFixture::with_input("rows.jsonl", &format!("{rows}{huge}\n"), "map");
    job.config.pack = Some(PackSize::Auto);
    let plan = job.plan_job().unwrap().plan().clone();
    assert_eq!((plan.pack, plan.requests), (10, 11));
}

#[tokio::test(start_paused = true)]
async fn empty_input_sends_no_requests() {
    let added = "copy,n,error\n";
    for (file, contents, header) in [
        ("rows.csv", "", added.to_owned()),
        ("rows.csv", "text,more\n", format!("text,more,{added}")),
        ("rows.json", "[]", added.to_owned()),
        ("rows.jsonl", "\n", added.to_owned()),
    ] {
        let mut job = JobFixture::with_input(file, contents, "map");
        assert_eq!(job.run().await.progress.requests, 0);
        assert_eq!(job.output(), "");
        job.config.output = job.file("out.csv");
        assert_eq!(job.run().await.progress.done, 0);
        assert_eq!(job.output(), header, "{contents:?}");
    }
    // A header is checked even without rows.
    let mut job = JobFixture::with_input("rows.csv", "text,copy\n", "map");
    let error = job.plan_job().unwrap_err().to_string();
    assert_eq!(error, "the rows already have a field `copy`");
    job.config.task.show = Some(vec![ShownField { field: "txet".to_owned(), max_chars: None }]);
    let error = job.plan_job().unwrap_err().to_string();
    assert_eq!(error, "no row has the field `txet` listed in `show`");
}

#[tokio::test(start_paused = true)]
async fn field_name_reserved_in_the_reply_format_is_rejected() {
    let mut job = JobFixture::new(3, "map");
    job.config.task.output.push(Field::new("item", FieldType::String));
    job.plan_job().unwrap();
    job.config.format = Some(ReplyFormat::Xml);
    let error = job.plan_job().unwrap_err();
    assert!(error.is_usage() && error.hint().is_some());
    assert_eq!(error.to_string(), "field name `item` is reserved in XML: <item> is an item");
}

#[tokio::test(start_paused = true)]
async fn field_missing_in_some_rows_is_shown_in_the_others() {
    let rows = "{\"a\":\"row-1\",\"b\":2}\n{\"b\":3}\n{\"a\":\"row-4\"}\n";
    let mut job = JobFixture::with_input("rows.jsonl", rows, "map");
    let shown = |field: &str| ShownField { field: field.to_owned(), max_chars: None };
    job.config.task.show = Some(vec![shown("a"), shown("b")]);
    job.run().await;
    let copies: Vec<Value> = job.rows().iter().map(|row| row["copy"].clone()).collect();
    assert_eq!(copies, ["row-1", "3", "row-4"]);
    job.config.output = job.file("out.csv");
    job.run().await;
    let csv = "a,b,copy,n,error\nrow-1,2,row-1,1,\n,3,3,3,\nrow-4,,row-4,4,\n";
    assert_eq!(job.output(), csv);
    job.config.task.show = Some(vec![shown("a"), shown("c")]);
    job.config.output = job.file("other.jsonl");
    let error = job.plan_job().unwrap_err();
    assert_eq!(error.to_string(), "no row has the field `c` listed in `show`");
    assert!(error.is_usage() && !job.config.output.exists());
}

#[tokio::test(start_paused = true)]
async fn stubborn_model_gives_error_rows_after_a_bounded_number_of_requests() {
    for format in ReplyFormat::ALL {
        let job = JobFixture::new(16, "map-stubborn").seeded(1, format);
        let outcome = job.run().await;
        assert_eq!(job.check(16), 0);
        // Packs of 10 and 6 rows: trees with 19 and 11 requests, and a re-ask for each of the 16 leaves.
        assert_eq!(outcome.progress.requests, 19 + 11 + 16, "{format}");
        let reason = job.rows()[3]["error"].as_str().unwrap().to_owned();
        // In XML every value is a string, so `copy` is valid.
        let field = if format == ReplyFormat::Xml { "n" } else { "copy" };
        assert!(reason.starts_with(&format!("`{field}` is ")), "{reason}");
        assert!(reason.contains("not a value of type "), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_without_an_answer_are_sent_to_the_fallback_model() {
    let mut job = JobFixture::new(25, "map-stubborn");
    job.config.models.push(model("map"));
    let outcome = job.run().await;
    assert_eq!((job.check(25), outcome.progress.errors), (25, 0));
    // The fallback model gets one request per pack.
    assert_eq!(outcome.progress.requests, 19 + 19 + 9 + 25 + 3);
    let mut job = JobFixture::new(2, "map-stubborn");
    job.config.models.push(model("map-stubborn"));
    job.run().await;
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason.matches("sim/map-stubborn: ").count(), 2, "{reason}");
}

#[tokio::test(start_paused = true)]
async fn invalid_reply_is_reasked_once() {
    // A reply with an unknown id.
    let job = JobFixture::new(1, "other");
    let outcome = job.run().await;
    assert_eq!(outcome.progress.requests, 2);
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the reply has no answer for it, and 1 for unknown ids");
    // Prose.
    let job = JobFixture::new(1, "pass-1").seeded(0, ReplyFormat::Xml);
    assert_eq!(job.run().await.progress.requests, 2);
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the reply cannot be read: there is no <item> in it (“ok”)");
}

#[tokio::test(start_paused = true)]
async fn batch_values_are_written_next_to_the_output() {
    let mut job = JobFixture::new(25, "map");
    job.config.task.batch = vec![Field::new("count", FieldType::Integer)];
    job.run().await;
    let batches = std::fs::read_to_string(job.file("out.jsonl.batches.jsonl")).unwrap();
    let batches: Vec<Value> =
        batches.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts: Vec<&Value> = batches.iter().map(|batch| &batch["batch"]["count"]).collect();
    assert_eq!(counts, [10, 10, 5]);
    assert_eq!(batches[2]["rows"], json!([20, 21, 22, 23, 24]));
    assert_eq!(job.check(25), 25);
}

#[tokio::test(start_paused = true)]
async fn job_stops_at_the_cost_limit_and_resumes_with_a_higher_one() {
    let mut job = JobFixture::new(2000, "map")
        .profile("latency = { kind = \"fixed\", ms = 100 }\nconcurrency = 4");
    let config = bakeoff_llm::ModelConfig::named("sim", "map").prices(Prices {
        input: NanoDollars(1_000_000_000),
        output: NanoDollars(1_000_000_000),
        ..Prices::default()
    });
    let priced = bakeoff_llm::Model::resolve(&config, &|_| None).unwrap();
    let priced = priced.with_limits(bakeoff_pace::Limits::fixed(4));
    job.config.models = vec![("sim/map".to_owned(), priced)];
    let whole = job.run().await.progress.cost.unwrap();
    assert!(whole > NanoDollars(0));
    job.config.output = job.file("bounded.jsonl");
    job.config.max_cost = Some(NanoDollars(whole.0 / 3));
    let outcome = job.run().await;
    assert_eq!(outcome.stop, Some(StopReason::Budget));
    let cost = outcome.progress.cost.unwrap();
    // Within the limit, and no more than about two requests below it.
    let max = whole.0 / 3;
    assert!(cost.0 <= max && cost.0 > max - 3 * whole.0 / 200, "{cost} of {whole}");
    job.config.max_cost = None;
    let outcome = job.run().await;
    assert_eq!((outcome.stop, outcome.progress.cost), (None, Some(whole)));
    assert_eq!(job.check(2000), 2000);
}

#[tokio::test(start_paused = true)]
async fn cost_limit_does_not_slow_down_free_requests() {
    let mut job = JobFixture::new(400, "map").profile("latency = { kind = \"fixed\", ms = 1000 }");
    job = job.limits(bakeoff_pace::Limits::fixed(4));
    job.config.max_cost = Some(NanoDollars(1));
    let start = tokio::time::Instant::now();
    assert_eq!(job.run().await.stop, None);
    assert!(start.elapsed() < std::time::Duration::from_secs(15), "{:?}", start.elapsed());
}
