//! Classifies the items of a `Vec`, several per request.
//!
//! `cargo run --example map --no-default-features --features map`

#![allow(clippy::print_stdout, reason = "the output of the example")]

use bakeoff::llm::{Client, ClientConfig, Model};
use bakeoff::map::{Field, FieldType, ItemError, PackSize, Task, map_items, simulated_models};
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // For real models, `Client::default()` is enough.
    let config = ClientConfig::default().simulated_models([simulated_models()]);
    let client = Arc::new(Client::new(config));
    // This simulated model drops, duplicates and reorders answers, so that invalid ones are requested again.
    // For a real model: `Model::from_env("openai/gpt-4.1-mini")?`, with OPENAI_API_KEY in the environment.
    let model = Model::from_env("sim/map-unruly")?;

    let sentiment = Field {
        options: Some(vec!["good".into(), "bad".into(), "mixed".into()]),
        ..Field::new("sentiment", FieldType::String)
    };
    let stars = Field { min: Some(1.0), max: Some(5.0), ..Field::new("stars", FieldType::Integer) };
    let mut task = Task::new("Classify each product review.", vec![sentiment, stars]);
    // By default, the size follows from the rate limits of the model.
    task.pack = PackSize::Items(20);

    // Strings, numbers, or values of your own types that implement `serde::Serialize`.
    let reviews: Vec<String> =
        (1..=200).map(|number| format!("Review {number}: it works, mostly.")).collect();
    let answers = map_items(&client, &model, &task, &reviews).await?;

    let mut failed = 0;
    for (review, answer) in reviews.iter().zip(&answers) {
        match answer {
            Ok(answer) if review.starts_with("Review 1:") => {
                println!("{review} -> {}, {} stars", answer["sentiment"], answer["stars"]);
            }
            Ok(_) => {}
            // The provider was down or rejected the key. A later call may succeed.
            Err(ItemError::NotProcessed(reason)) => return Err(reason.clone().into()),
            Err(error) => {
                failed += 1;
                println!("{review} has no answer: {error}");
            }
        }
    }
    let requests: u64 = client.pools().iter().map(|pool| pool.snapshot().answered).sum();
    println!("{} items in {requests} requests, {failed} without an answer", answers.len());
    Ok(())
}
