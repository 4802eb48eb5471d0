//! Rows without an answer, asked about once more.

use crate::support::Place;
use bakeoff_map::{Field, FieldType, Stop};

#[tokio::test(start_paused = true)]
async fn rows_without_an_answer_get_another_chance_and_nobody_else_is_asked() {
    let mut place = Place::new(100, "map-stubborn");
    let first = place.run().await;
    assert_eq!(first.progress.errors, 100);
    place.config.retry_errors = true;
    let second = place.run().await;
    assert_eq!((second.progress.errors, second.stop), (100, None));
    assert_eq!(second.progress.requests, 2 * first.progress.requests);
    // A round is for those who are left: when all have answers, there is none.
    let mut place = Place::new(100, "map");
    let first = place.run().await;
    place.config.retry_errors = true;
    assert!(place.job().unwrap().plan().is_finished);
    assert_eq!(place.run().await, first);
}

#[tokio::test(start_paused = true)]
async fn another_round_makes_answers_of_errors_and_is_the_same_after_interruptions() {
    let mut place = Place::new(2000, "map-drop");
    place.config.task.batch = vec![Field::new("count", FieldType::Integer)];
    let first = place.run().await;
    assert!(first.progress.errors > 5, "{first:?}");
    let journal = bakeoff_map::journal_of(&place.config.output);
    let before = std::fs::read(&journal).unwrap();
    let earlier = place.output();
    let said = std::fs::read(bakeoff_map::facts_of(&place.config.output)).unwrap();
    place.config.retry_errors = true;
    let second = place.run().await;
    assert!(second.progress.errors < first.progress.errors, "{second:?}");
    let made = second.progress.requests - first.progress.requests;
    assert!(made <= 4 * first.progress.errors, "{made} requests for {first:?}");
    place.check(2000);
    let expected = place.output();
    let facts = std::fs::read(bakeoff_map::facts_of(&place.config.output)).unwrap();
    // The same round, interrupted again and again.
    std::fs::write(&journal, before).unwrap();
    std::fs::write(&place.config.output, earlier).unwrap();
    std::fs::write(bakeoff_map::facts_of(&place.config.output), said).unwrap();
    let mut done = 0;
    let mut stops = 0;
    loop {
        let finished = place.run_until(|progress| progress.done > done).await;
        done = finished.progress.done;
        if finished.stop.is_none() {
            assert_eq!(finished.progress.requests, second.progress.requests);
            break;
        }
        assert_eq!(finished.stop, Some(Stop::Interrupted));
        stops += 1;
    }
    assert!(stops > 1, "{stops}");
    assert_eq!(place.output(), expected);
    assert_eq!(std::fs::read(bakeoff_map::facts_of(&place.config.output)).unwrap(), facts);
}

#[tokio::test(start_paused = true)]
async fn an_output_that_somebody_has_mended_is_not_written_over() {
    let mut place = Place::new(20, "map-stubborn");
    place.run().await;
    let mended = place.output().replacen("null", "\"by hand\"", 1);
    std::fs::write(&place.config.output, &mended).unwrap();
    place.config.retry_errors = true;
    let error = place.job().unwrap_err();
    assert!(matches!(error, bakeoff_map::Error::Edited { .. }), "{error}");
    assert_eq!(place.output(), mended);
}
