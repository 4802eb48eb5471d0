//! Runs a model with a tool and prints what happens.
//!
//! `cargo run --example agent --no-default-features --features agent`

#![allow(clippy::print_stdout, reason = "the output of the example")]

use bakeoff::agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, ExecutionLimits, Tool, ToolContext,
    ToolError, ToolOutput, agent_loop, event_channel,
};
use bakeoff::llm::{Client, Model};
use bakeoff::{CancellationToken, Value, async_trait, json};
use std::sync::Arc;

/// A tool that counts the words of a text.
#[derive(Debug)]
struct WordCount(bakeoff::core::ToolDefinition);

impl WordCount {
    fn new() -> WordCount {
        let text = json!({ "type": "string", "description": "The text." });
        WordCount(bakeoff::core::ToolDefinition {
            name: "word_count".to_owned(),
            description: "Counts the words of a text.".to_owned(),
            parameters: json!({
                "type": "object", "properties": { "text": text }, "required": ["text"],
            }),
        })
    }
}

#[async_trait]
impl Tool for WordCount {
    fn definition(&self) -> &bakeoff::core::ToolDefinition {
        &self.0
    }

    async fn execute(&self, arguments: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        // The loop has validated the arguments against the schema.
        let text = arguments["text"].as_str().unwrap_or_default();
        Ok(format!("{} words", text.split_whitespace().count()).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Arc::new(Client::default());
    // This simulated model calls the first tool and repeats its result. For a real model:
    // `Model::from_env("anthropic/claude-sonnet-4-5")?`, with ANTHROPIC_API_KEY in the environment.
    let model = Model::from_env("sim/tool")?;
    let config =
        AgentLoopConfig::new(&client, model).limits(ExecutionLimits::default().max_turns(10));
    let mut context = AgentContext::default()
        .with_system_prompt("Use the tools; do not count by yourself.")
        .with_tools(vec![Arc::new(WordCount::new())]);

    // The receiver is also a `Stream`.
    let (tx, mut rx) = event_channel(1024);
    let listener = tokio::spawn(async move {
        while let Some(event) = rx.recv().await {
            match event {
                AgentEvent::ToolExecutionStart { call, .. } => {
                    println!("{}({})", call.name, call.arguments);
                }
                AgentEvent::TurnEnd { turn, usage, .. } => {
                    println!("turn {turn}: {} tokens", usage.total());
                }
                _ => {}
            }
        }
    });
    let prompts = vec![AgentMessage::user("How many words does this sentence have?")];
    let end = agent_loop(prompts, &mut context, &config, tx, CancellationToken::new()).await?;
    listener.await?;
    println!("{:?} after {} turns: {}", end.status, end.turns, end.answer());
    Ok(())
}
