//! Replies with everything wrong with them: no row ever has the answer of another.

use crate::support::Place;
use bakeoff_map::Format;

const KINDS: [&str; 10] = [
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

/// 100 seeds, 10 000 rows in all, for everything at once; fewer for each kind of mischief alone. In
/// all formats.
#[tokio::test(start_paused = true)]
async fn no_row_ever_has_the_answer_of_another() {
    for (place, kind) in KINDS.into_iter().enumerate() {
        let mut answered = 0;
        let seeds = if kind == "map-unruly" { 100 } else { 12 };
        for seed in 0..seeds {
            let format = Format::ALL[(seed as usize + place) % 3];
            let job = Place::new(100, kind).seeded(seed, format);
            let finished = job.run().await;
            answered += job.check(100);
            assert_eq!(finished.progress.errors as usize, 100 - job.check(100));
        }
        // Where nothing is lost for ever, everything is found in the end.
        let least = match kind {
            "map" | "map-reorder" | "map-wrap" | "map-think" => 100,
            "map-mix" | "map-drop" | "map-duplicate" | "map-rename" | "map-unruly" => 50,
            _ => 5,
        };
        let answered = answered * 100 / (seeds as usize * 100);
        assert!(answered >= least, "{kind}: {answered} %");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_rows_through_an_unruly_model_with_another_to_fall_back_on() {
    let mut job = Place::new(10_000, "map-unruly");
    job.config.models.push(crate::support::model("map"));
    let finished = job.run().await;
    assert_eq!(job.check(10_000), 10_000);
    assert_eq!((finished.progress.done, finished.progress.errors), (10_000, 0));
    assert!(finished.progress.again > 0);
}
