//! What is odd: rows that are too large, none at all, fields that some lack, models that never obey.

use crate::support::{Place, model};
use bakeoff_core::{NanoDollars, Prices};
use bakeoff_map::{Field, FieldType, Format, PackSize, Shown, Stop};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_row_larger_than_the_budget_goes_alone_and_one_that_cannot_be_sent_says_so() {
    let row = |length: usize| json!({ "text": "x".repeat(length) }).to_string();
    let rows = [row(10), row(10), row(9000), row(50_000), row(10)].join("\n");
    let mut job = Place::with("rows.jsonl", &rows, "map");
    job.config.task.max_tokens_per_request = 2000;
    job.config.task.context_tokens = Some(10_000);
    let finished = job.run().await;
    // Two together, the large one alone, and the last.
    assert_eq!((finished.progress.requests, finished.progress.errors), (3, 1));
    let out = job.rows();
    assert_eq!(out.len(), 5);
    assert_eq!(out[2]["copy"], out[2]["text"]);
    let error = out[3]["error"].as_str().unwrap();
    assert!(error.starts_with("the row is too large: it needs about 12"), "{error}");
    assert!(error.ends_with("and a request may have 10000"), "{error}");
    assert_eq!(out[3]["text"].as_str().unwrap().len(), 50_000);
    // Cut for the model, it can be sent; the output has it all.
    job.config.force = true;
    job.config.task.show = Some(vec![Shown { field: "text".to_owned(), max_chars: Some(100) }]);
    let finished = job.run().await;
    assert_eq!((finished.progress.requests, finished.progress.errors), (1, 0));
    assert_eq!(job.rows()[3]["copy"].as_str().unwrap().chars().count(), 101);
    assert_eq!(job.rows()[3]["text"].as_str().unwrap().len(), 50_000);
}

#[tokio::test(start_paused = true)]
async fn one_huge_row_does_not_decide_for_the_others() {
    let rows: String = (0..99).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
    let huge = json!({ "text": "x".repeat(4_000_000) });
    let mut job = Place::with("rows.jsonl", &format!("{rows}{huge}\n"), "map");
    job.config.pack = Some(PackSize::Auto);
    let plan = job.job().unwrap().plan().clone();
    assert_eq!((plan.pack, plan.requests), (10, 11));
}

#[tokio::test(start_paused = true)]
async fn no_rows_are_no_requests() {
    let own = "copy,n,error\n";
    for (file, contents, header) in [
        ("rows.csv", "", own.to_owned()),
        ("rows.csv", "text,more\n", format!("text,more,{own}")),
        ("rows.json", "[]", own.to_owned()),
        ("rows.jsonl", "\n", own.to_owned()),
    ] {
        let mut job = Place::with(file, contents, "map");
        assert_eq!(job.run().await.progress.requests, 0);
        assert_eq!(job.output(), "");
        job.config.output = job.file("out.csv");
        assert_eq!(job.run().await.progress.done, 0);
        assert_eq!(job.output(), header, "{contents:?}");
    }
    // What is wrong with a header is wrong without rows, too.
    let mut job = Place::with("rows.csv", "text,copy\n", "map");
    let error = job.job().unwrap_err().to_string();
    assert_eq!(error, "the rows already have a field `copy`");
    job.config.task.show = Some(vec![Shown { field: "txet".to_owned(), max_chars: None }]);
    let error = job.job().unwrap_err().to_string();
    assert_eq!(error, "no row has the field `txet` that the task shows");
}

#[tokio::test(start_paused = true)]
async fn a_field_that_a_form_of_replies_needs_for_itself_is_refused() {
    let mut job = Place::new(3, "map");
    job.config.task.output.push(Field::new("item", FieldType::String));
    job.job().unwrap();
    job.config.format = Some(Format::Xml);
    let error = job.job().unwrap_err();
    assert!(error.is_usage() && error.hint().is_some());
    assert_eq!(
        error.to_string(),
        "a field cannot be called `item` in XML, where <item> is an item"
    );
}

#[tokio::test(start_paused = true)]
async fn a_field_that_some_rows_lack_is_shown_where_it_is() {
    let rows = "{\"a\":\"row-1\",\"b\":2}\n{\"b\":3}\n{\"a\":\"row-4\"}\n";
    let mut job = Place::with("rows.jsonl", rows, "map");
    let shown = |field: &str| Shown { field: field.to_owned(), max_chars: None };
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
    let error = job.job().unwrap_err();
    assert_eq!(error.to_string(), "no row has the field `c` that the task shows");
    assert!(error.is_usage() && !job.config.output.exists());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_obeys_gives_error_rows_after_a_bounded_number_of_requests() {
    for format in Format::ALL {
        let job = Place::new(16, "map-stubborn").seeded(1, format);
        let finished = job.run().await;
        assert_eq!(job.check(16), 0);
        // Packs of 10 and 6 rows: trees with 19 and 11 nodes, and each of 16 leaves asked twice.
        assert_eq!(finished.progress.requests, 19 + 11 + 16, "{format}");
        let reason = job.rows()[3]["error"].as_str().unwrap().to_owned();
        // In XML everything is a text, and so one field less is wrong.
        let field = if format == Format::Xml { "n" } else { "copy" };
        assert!(reason.starts_with(&format!("`{field}` is ")), "{reason}");
        assert!(reason.contains("not a value of type "), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_model_cannot_answer_the_next_one_may() {
    let mut job = Place::new(25, "map-stubborn");
    job.config.models.push(model("map"));
    let finished = job.run().await;
    assert_eq!((job.check(25), finished.progress.errors), (25, 0));
    // Each of the three packs is asked once more, as a whole.
    assert_eq!(finished.progress.requests, 19 + 19 + 9 + 25 + 3);
    let mut job = Place::new(2, "map-stubborn");
    job.config.models.push(model("map-stubborn"));
    job.run().await;
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason.matches("sim/map-stubborn: ").count(), 2, "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_no_reply_is_sent_back_once() {
    // Prose, and then prose again; alone, too.
    let job = Place::new(1, "nobody");
    let finished = job.run().await;
    assert_eq!(finished.progress.requests, 2);
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the reply has no answer for it, and 1 for ids that nobody has");
    let job = Place::new(1, "pass-1").seeded(0, Format::Xml);
    assert_eq!(job.run().await.progress.requests, 2);
    let reason = job.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the reply cannot be read: there is no <item> in it (“ok”)");
}

#[tokio::test(start_paused = true)]
async fn facts_about_whole_requests_go_beside_the_output() {
    let mut job = Place::new(25, "map");
    job.config.task.batch = vec![Field::new("count", FieldType::Integer)];
    job.run().await;
    let facts = std::fs::read_to_string(job.file("out.jsonl.batches.jsonl")).unwrap();
    let facts: Vec<Value> = facts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts: Vec<&Value> = facts.iter().map(|fact| &fact["batch"]["count"]).collect();
    assert_eq!(counts, [10, 10, 5]);
    assert_eq!(facts[2]["rows"], json!([20, 21, 22, 23, 24]));
    assert_eq!(job.check(25), 25);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_cost_enough_starts_nothing_more_and_goes_on_with_more_money() {
    let mut job = Place::new(2000, "map")
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
    let finished = job.run().await;
    assert_eq!(finished.stop, Some(Stop::Budget));
    let cost = finished.progress.cost.unwrap();
    // Up to a request or two, and no more than it may.
    let most = whole.0 / 3;
    assert!(cost.0 <= most && cost.0 > most - 3 * whole.0 / 200, "{cost} of {whole}");
    job.config.max_cost = None;
    let finished = job.run().await;
    assert_eq!((finished.stop, finished.progress.cost), (None, Some(whole)));
    assert_eq!(job.check(2000), 2000);
}

#[tokio::test(start_paused = true)]
async fn a_bound_on_the_cost_does_not_slow_down_what_is_free() {
    let mut job = Place::new(400, "map").profile("latency = { kind = \"fixed\", ms = 1000 }");
    job = job.limits(bakeoff_pace::Limits::fixed(4));
    job.config.max_cost = Some(NanoDollars(1));
    let start = tokio::time::Instant::now();
    assert_eq!(job.run().await.stop, None);
    assert!(start.elapsed() < std::time::Duration::from_secs(15), "{:?}", start.elapsed());
}
