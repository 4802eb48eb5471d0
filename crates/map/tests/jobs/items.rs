//! Tests of items in memory.

use crate::support::{JobFixture, model, task};
use bakeoff_map::{Answer, Error, ItemError, PackSize, Task, map_items};
use serde_json::json;

fn texts(items: usize) -> Vec<String> {
    (0..items).map(|n| format!("item-{n}")).collect()
}

fn packed(items: u32) -> Task {
    Task { pack: PackSize::Items(items), ..task() }
}

async fn run(
    job: &JobFixture,
    name: &str,
    task: &Task,
    items: usize,
) -> Vec<Result<Answer, ItemError>> {
    map_items(&job.client(), &model(name).1, task, texts(items)).await.unwrap()
}

/// Checks that each answer belongs to its item, and returns the number of answers.
fn check(answers: &[Result<Answer, ItemError>]) -> usize {
    let mut answered = 0;
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Ok(answer) => {
                let copy = format!("item-{n}");
                assert_eq!((answer.text("copy"), &answer["n"]), (Some(&*copy), &json!(n)));
                answered += 1;
            }
            Err(error) => assert!(matches!(error, ItemError::NoAnswer(_)), "{error}"),
        }
    }
    answered
}

#[tokio::test(start_paused = true)]
async fn each_item_gets_its_own_answer_in_order() {
    let job = JobFixture::new(0, "map");
    let answers = run(&job, "map", &packed(10), 25).await;
    assert_eq!((answers.len(), check(&answers)), (25, 25));
    assert!(run(&job, "map", &task(), 0).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn invalid_replies_are_split_until_every_item_has_an_answer() {
    let job = JobFixture::new(0, "map").seeded(3, bakeoff_map::ReplyFormat::Json);
    assert_eq!(check(&run(&job, "map-drop", &packed(8), 64).await), 64);
    // This model sometimes fails even for a single item.
    let answers = run(&job, "map-unruly", &packed(8), 64).await;
    assert!(answers.len() == 64 && check(&answers) > 48, "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn unavailable_model_leaves_items_unprocessed() {
    for name in ["fault-401", "fault-503"] {
        let job = JobFixture::new(0, name);
        let answers = run(&job, name, &packed(2), 100).await;
        let is_unprocessed = |answer: &Result<Answer, ItemError>| matches!(answer, Err(ItemError::NotProcessed(reason)) if !reason.is_empty());
        assert!(answers.len() == 100 && answers.iter().all(is_unprocessed), "{answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_items_have_an_error_each() {
    let job = JobFixture::new(0, "fault-400");
    let answers = run(&job, "fault-400", &packed(2), 4).await;
    let is_failed = |answer: &Result<Answer, ItemError>| matches!(answer, Err(ItemError::NoAnswer(reason)) if !reason.is_empty());
    assert!(answers.iter().all(is_failed), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn oversized_item_is_not_sent() {
    let job = JobFixture::new(0, "map");
    let task = Task { context_tokens: Some(600), ..task() };
    let items = ["item-0".to_owned(), "long ".repeat(2000), "item-2".to_owned()];
    let answers = map_items(&job.client(), &model("map").1, &task, items).await.unwrap();
    assert!(matches!(answers[1], Err(ItemError::TooLarge(_))), "{answers:?}");
    assert!(answers[0].is_ok() && answers[2].is_ok());
}

#[tokio::test(start_paused = true)]
async fn objects_are_rows_and_invalid_tasks_are_errors() {
    let job = JobFixture::new(0, "map");
    let items = [json!({ "a": "x-7", "b": true })];
    let call = |task: Task| {
        let (client, items) = (job.client(), items.clone());
        async move { map_items(&client, &model("map").1, &task, items).await }
    };
    let answers = call(task()).await.unwrap();
    assert_eq!(answers[0].as_ref().unwrap().text("copy"), Some("x-7"));
    let show = vec![bakeoff_map::ShownField { field: "gone".to_owned(), max_chars: None }];
    let error = call(Task { show: Some(show), ..task() }).await.unwrap_err();
    assert!(matches!(error, Error::NoSuchField(_)), "{error}");
    let error = call(Task { context_tokens: Some(10), ..task() }).await.unwrap_err();
    assert!(matches!(error, Error::PromptTooLarge { .. }), "{error}");
}
