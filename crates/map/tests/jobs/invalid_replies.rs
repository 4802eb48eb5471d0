//! Tests with models that return invalid replies: no row ever gets the answer of another row.

use crate::support::JobFixture;
use bakeoff_map::ReplyFormat;

const MODELS: [&str; 10] = [
    "map-unruly",
    "map-reorder",
    "map-drop",
    "map-duplicate",
    "map-rename",
    "map-truncate",
    "map-wrap",
    "map-mix",
    "map-think",
    "map",
];

/// Runs 100 seeds, 10 000 rows in total, with all faults at once, and fewer with each fault alone, in all
/// formats.
#[tokio::test(start_paused = true)]
async fn no_row_gets_the_answer_of_another() {
    for (index, kind) in MODELS.into_iter().enumerate() {
        let mut answered = 0;
        let seeds = if kind == "map-unruly" { 100 } else { 12 };
        for seed in 0..seeds {
            let format = ReplyFormat::ALL[(seed as usize + index) % 3];
            let job = JobFixture::new(100, kind).seeded(seed, format);
            let outcome = job.run().await;
            answered += job.check(100);
            assert_eq!(outcome.progress.errors as usize, 100 - job.check(100));
        }
        // Faults that lose no answers for good leave no row without one.
        let min_percent = match kind {
            "map" | "map-reorder" | "map-wrap" | "map-think" => 100,
            "map-mix" | "map-drop" | "map-duplicate" | "map-rename" | "map-unruly" => 50,
            _ => 5,
        };
        let answered = answered * 100 / (seeds as usize * 100);
        assert!(answered >= min_percent, "{kind}: {answered} %");
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_model_answers_all_rows_of_an_unruly_model() {
    let mut job = JobFixture::new(10_000, "map-unruly");
    job.config.models.push(crate::support::model("map"));
    let outcome = job.run().await;
    assert_eq!(job.check(10_000), 10_000);
    assert_eq!((outcome.progress.done, outcome.progress.errors), (10_000, 0));
    assert!(outcome.progress.reasks > 0);
}
