//! Tests of failing models: error rows, fallback, or stop of the job.

use crate::support::{JobFixture, model};
use bakeoff_map::{JobOutcome, PackSize, StopReason};

fn stop_reason(outcome: &JobOutcome) -> &str {
    match &outcome.stop {
        Some(StopReason::ModelUnavailable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn unavailable_model_stops_the_job_without_error_rows() {
    for (name, expected) in [
        ("fault-401", "401: Incorrect API key provided; "),
        ("fault-404", "The model does not exist "),
        ("fault-400", "all requests fail: "),
        ("fault-503", "no request to sim/fault-503 succeeded for "),
    ] {
        let mut job = JobFixture::new(500, name);
        let outcome = job.run().await;
        let reason = stop_reason(&outcome);
        assert!(reason.starts_with(expected), "{name}: {reason}");
        assert_eq!((outcome.progress.done, job.output().as_str()), (0, ""), "{name}");
        assert!(outcome.progress.requests <= 50, "{name}: {outcome:?}");
        // A fallback model answers all rows.
        job.config.output = job.file("other.jsonl");
        job.config.models.push(model("map"));
        let outcome = job.run().await;
        assert_eq!((job.check(500), outcome.stop), (500, None), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn few_rejected_requests_give_error_rows() {
    // Two packs and their halves: too few failures to rule out the rows as the cause.
    let mut job = JobFixture::new(4, "fault-400");
    job.config.pack = Some(PackSize::Items(2));
    let outcome = job.run().await;
    assert_eq!((outcome.progress.errors, outcome.stop), (4, None));
    assert_eq!(outcome.progress.requests, 2 * 6, "each with and without structured output");
}

#[tokio::test(start_paused = true)]
async fn long_outage_stops_the_job_without_error_rows() {
    let latency = "latency = { kind = \"fixed\", ms = 1000 }\nconcurrency = 4";
    let mut job = JobFixture::new(1000, "map")
        .profile(&format!("{latency}\noutages = [{{ from_s = 10, to_s = 100000 }}]"))
        .limits(bakeoff_pace::Limits::fixed(4));
    let outcome = job.run().await;
    stop_reason(&outcome);
    assert!(outcome.progress.done >= 300 && outcome.progress.done < 1000, "{outcome:?}");
    assert_eq!(outcome.progress.errors, 0);
    job = job.profile(latency);
    let outcome = job.run().await;
    assert_eq!((job.check(1000), outcome.stop), (1000, None));
}

#[tokio::test(start_paused = true)]
async fn structured_output_is_dropped_for_models_without_it() {
    let mut job = JobFixture::new(500, "map-plain").limits(bakeoff_pace::Limits::fixed(1));
    let outcome = job.run().await;
    assert_eq!((job.check(500), outcome.stop), (500, None));
    // One rejected request.
    assert_eq!(outcome.progress.requests, 51);
    // An explicit setting is kept.
    job.config.output = job.file("other.jsonl");
    job.config.task.structured = Some(true);
    stop_reason(&job.run().await);
    job.config.output = job.file("third.jsonl");
    job.config.task.structured = Some(false);
    assert_eq!(job.run().await.progress.requests, 50);
}

#[tokio::test(start_paused = true)]
async fn rejected_rows_do_not_stop_a_resumed_job() {
    // Rows with this text are rejected for their content.
    let rejected = "{\"text\":\"REFUSE\"}\n";
    let rows: String = (0..30).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
    let rows = rows + &rejected.repeat(30);
    let mut job = JobFixture::with_input("rows.jsonl", &rows, "map-picky");
    job.config.pack = Some(PackSize::Items(1));
    let whole = job.run().await;
    assert_eq!((whole.progress.errors, whole.stop), (30, None));
    let expected = job.output();
    job.config.output = job.file("other.jsonl");
    job.run_until(|progress| progress.done >= 35).await;
    let outcome = job.run().await;
    assert_eq!((outcome.progress.errors, outcome.stop), (30, None));
    assert_eq!(job.output(), expected);
}

#[tokio::test(start_paused = true)]
async fn unavailable_model_is_reported_and_not_called_again() {
    let mut job = JobFixture::new(500, "fault-404").limits(bakeoff_pace::Limits::fixed(1));
    job.config.models.push(model("map"));
    let outcome = job.run().await;
    assert_eq!((job.check(500), outcome.stop.clone()), (500, None));
    let [(name, reason)] = outcome.unavailable_models.as_slice() else { panic!("{outcome:?}") };
    assert_eq!(name, "sim/fault-404");
    assert!(reason.starts_with("The model does not exist"), "{reason}");
    assert!(outcome.progress.requests <= 50 + 20, "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_no_provider_stops_the_job() {
    let job = JobFixture::new(500, "fault-malformed");
    let outcome = job.run().await;
    let reason = stop_reason(&outcome);
    assert!(reason.starts_with("all requests fail: "), "{reason}");
    assert_eq!(outcome.progress.done, 0);
}

#[tokio::test(start_paused = true)]
async fn cached_responses_do_not_count_as_a_running_provider() {
    // One row in three is too large to be sent; the others get into the cache.
    let more = |n: usize| if n.is_multiple_of(3) { "x".repeat(4000) } else { String::new() };
    let row = |n: usize| format!("{{\"text\":\"row-{n}\",\"more\":\"{}\"}}\n", more(n));
    let mut job =
        JobFixture::with_input("rows.jsonl", &(0..400).map(row).collect::<String>(), "map");
    (job.is_cached, job.config.pack) = (true, Some(PackSize::Items(1)));
    job = job.limits(bakeoff_pace::Limits::fixed(2));
    job.config.task.context_tokens = Some(1000);
    assert_eq!(job.run().await.progress.errors, 134);
    // Now the large rows could be sent, but the provider is down.
    job = job.profile("outages = [{ from_s = 0, to_s = 1000000 }]");
    job.config.task.context_tokens = None;
    job.config.output = job.file("other.jsonl");
    let outcome = job.run().await;
    stop_reason(&outcome);
    assert!(outcome.progress.cached > 0, "{outcome:?}");
    assert_eq!(outcome.progress.errors, 0);
}

#[tokio::test(start_paused = true)]
async fn short_outage_leaves_no_error_rows() {
    // The outage is longer than the retries of most calls, and ends before ten of them have failed.
    let profile = "latency = { kind = \"fixed\", ms = 1000 }\nconcurrency = 4\n\
                   outages = [{ from_s = 10, to_s = 50 }]";
    let job = JobFixture::new(600, "map").profile(profile).limits(bakeoff_pace::Limits::fixed(4));
    let outcome = job.run().await;
    assert_eq!((job.check(600), outcome.stop), (600, None));
}
