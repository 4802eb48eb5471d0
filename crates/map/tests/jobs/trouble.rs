//! Models that do not answer: whose fault that is, and what becomes of the rows.

use crate::support::{Place, model};
use bakeoff_map::{Finished, PackSize, Stop};

fn refused(finished: &Finished) -> &str {
    match &finished.stop {
        Some(Stop::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_answers_nobody_ends_the_job_and_leaves_no_error_rows() {
    for (name, said) in [
        ("fault-401", "Incorrect API key provided."),
        ("fault-404", "The model does not exist "),
        ("fault-400", "no request is answered any more: "),
        ("fault-503", "no request is answered any more: "),
    ] {
        let mut place = Place::new(500, name);
        let finished = place.run().await;
        let reason = refused(&finished);
        assert!(reason.starts_with(said), "{name}: {reason}");
        assert_eq!((finished.progress.done, place.output().as_str()), (0, ""), "{name}");
        assert!(finished.progress.requests <= 50, "{name}: {finished:?}");
        // With another to fall back on, nobody notices.
        place.config.output = place.file("other.jsonl");
        place.config.models.push(model("map"));
        let finished = place.run().await;
        assert_eq!((place.check(500), finished.stop), (500, None), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_few_rows_that_nobody_wants_are_error_rows() {
    // Two packs, and each of their halves: too few to say that it is not the rows.
    let mut place = Place::new(4, "fault-400");
    place.config.pack = Some(PackSize::Items(2));
    let finished = place.run().await;
    assert_eq!((finished.progress.errors, finished.stop), (4, None));
    assert_eq!(finished.progress.requests, 2 * 6, "structured and plain");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_down_for_long_costs_no_row_its_answer() {
    let latency = "latency = { kind = \"fixed\", ms = 1000 }\nconcurrency = 4";
    let mut place = Place::new(1000, "map")
        .profile(&format!("{latency}\noutages = [{{ from_s = 10, to_s = 100000 }}]"))
        .limits(bakeoff_pace::Limits::fixed(4));
    let finished = place.run().await;
    refused(&finished);
    assert!(finished.progress.done >= 300 && finished.progress.done < 1000, "{finished:?}");
    assert_eq!(finished.progress.errors, 0);
    place = place.profile(latency);
    let finished = place.run().await;
    assert_eq!((place.check(1000), finished.stop), (1000, None));
}

#[tokio::test(start_paused = true)]
async fn a_model_without_structured_output_is_asked_without() {
    let mut place = Place::new(500, "map-plain").limits(bakeoff_pace::Limits::fixed(1));
    let finished = place.run().await;
    assert_eq!((place.check(500), finished.stop), (500, None));
    // It refuses once, and is not asked again.
    assert_eq!(finished.progress.requests, 51);
    // Whoever insists gets it.
    place.config.output = place.file("other.jsonl");
    place.config.task.structured = Some(true);
    refused(&place.run().await);
    place.config.output = place.file("third.jsonl");
    place.config.task.structured = Some(false);
    assert_eq!(place.run().await.progress.requests, 50);
}

#[tokio::test(start_paused = true)]
async fn rows_that_nobody_wants_do_not_stop_a_job_that_goes_on() {
    // Rows of another length are refused for their content.
    let refused = "{\"text\":\"REFUSE\"}\n";
    let rows: String = (0..30).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
    let rows = rows + &refused.repeat(30);
    let mut place = Place::with("rows.jsonl", &rows, "map-picky");
    place.config.pack = Some(PackSize::Items(1));
    let whole = place.run().await;
    assert_eq!((whole.progress.errors, whole.stop), (30, None));
    let expected = place.output();
    place.config.output = place.file("other.jsonl");
    place.run_until(|progress| progress.done >= 35).await;
    let finished = place.run().await;
    assert_eq!((finished.progress.errors, finished.stop), (30, None));
    assert_eq!(place.output(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_gone_is_named_and_not_asked_again_and_again() {
    let mut place = Place::new(500, "fault-404").limits(bakeoff_pace::Limits::fixed(1));
    place.config.models.push(model("map"));
    let finished = place.run().await;
    assert_eq!((place.check(500), finished.stop.clone()), (500, None));
    let [(name, reason)] = finished.refused.as_slice() else { panic!("{finished:?}") };
    assert_eq!(name, "sim/fault-404");
    assert!(reason.starts_with("The model does not exist"), "{reason}");
    assert!(finished.progress.requests <= 50 + 20, "{finished:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_provider_ends_the_job() {
    let place = Place::new(500, "fault-malformed");
    let finished = place.run().await;
    let reason = refused(&finished);
    assert!(reason.starts_with("no request is answered any more: "), "{reason}");
    assert_eq!(finished.progress.done, 0);
}

#[tokio::test(start_paused = true)]
async fn answers_from_the_cache_do_not_say_that_a_provider_is_up() {
    // One row of three is too large to be asked about: the others are in the cache then.
    let more = |n: usize| if n.is_multiple_of(3) { "x".repeat(4000) } else { String::new() };
    let row = |n: usize| format!("{{\"text\":\"row-{n}\",\"more\":\"{}\"}}\n", more(n));
    let mut place = Place::with("rows.jsonl", &(0..400).map(row).collect::<String>(), "map");
    (place.is_cached, place.config.pack) = (true, Some(PackSize::Items(1)));
    place = place.limits(bakeoff_pace::Limits::fixed(2));
    place.config.task.context_tokens = Some(1000);
    assert_eq!(place.run().await.progress.errors, 134);
    // Now they could be, but the provider is down.
    place = place.profile("outages = [{ from_s = 0, to_s = 1000000 }]");
    place.config.task.context_tokens = None;
    place.config.output = place.file("other.jsonl");
    let finished = place.run().await;
    refused(&finished);
    assert!(finished.progress.cached > 0, "{finished:?}");
    assert_eq!(finished.progress.errors, 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_ends_costs_no_row_its_answer() {
    // Longer than most calls are tried again, and over before ten of them have failed.
    let profile = "latency = { kind = \"fixed\", ms = 1000 }\nconcurrency = 4\n\
                   outages = [{ from_s = 10, to_s = 50 }]";
    let place = Place::new(600, "map").profile(profile).limits(bakeoff_pace::Limits::fixed(4));
    let finished = place.run().await;
    assert_eq!((place.check(600), finished.stop), (600, None));
}
