//! Behaviour of the simulated models, without limits and time.
//!
//! [`ModelKind::resolve`] maps a name to a behaviour; [`draft`] generates the answer.

mod fill;
mod name;
mod prose;
mod tool;

pub(crate) use name::{BuiltinModel, ModelKind, error_for_status};

use crate::key::SeedKey;
use crate::request::Fault;
use crate::{ModelAnswer, SimModel, TokenCount, last_user_text, tokens};
use bakeoff_core::{
    Content, FinishReason, ImageSource, Message, OutputFormat, Request, Response, Thinking, Usage,
};
use fill::FillHints;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Minimum length of the answer of `fault-huge`.
const HUGE_BYTES: usize = 12 << 20;

/// Answer of a model before limits apply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Draft {
    Answer(Response),
    Broken(Fault),
}

/// Inputs of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerContext<'a> {
    /// The model's name without the prefix `sim/`.
    pub(crate) name: &'a str,
    pub(crate) definition: Option<&'a SimModel>,
    pub(crate) request: &'a Request,
    pub(crate) key: SeedKey,
    /// Token counts that replace the estimated ones.
    pub(crate) input_tokens: Option<TokenCount>,
    pub(crate) output_tokens: Option<TokenCount>,
}

impl<'a> AnswerContext<'a> {
    /// Returns the model's name without the prefix `sim/`.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the model's definition in the suite, if there is one.
    pub fn definition(&self) -> Option<&'a SimModel> {
        self.definition
    }

    /// Returns the request.
    pub fn request(&self) -> &'a Request {
        self.request
    }

    /// Returns a generator seeded by the request, the trial and the purpose. Generators of different
    /// purposes are independent.
    pub fn rng(&self, purpose: &str) -> ChaCha8Rng {
        self.key.rng(purpose)
    }
}

/// Generates the model's answer.
pub(crate) fn draft(model: ModelKind<'_>, context: &AnswerContext<'_>) -> Draft {
    let content = match (plan_step(context), prepared_answer(context)) {
        (Some(PlanStep::Call(call)), _) => vec![call],
        (_, Some(text)) => vec![Content::text(text)],
        (Some(PlanStep::LastResult(text)), None) => vec![Content::text(text)],
        (None, None) => match model {
            ModelKind::Custom(behaviour) => vec![custom_part(behaviour.answer(context), context)],
            // The engine handles failures and latency of these models; their answers are echoes.
            ModelKind::Builtin(
                BuiltinModel::Echo
                | BuiltinModel::Slow
                | BuiltinModel::Flaky(_)
                | BuiltinModel::Status(_),
            ) => {
                vec![Content::text(echo(context.request))]
            }
            ModelKind::Builtin(BuiltinModel::Pass(share)) => {
                let pass = context.key.rng("answer").random::<f64>() < share;
                vec![Content::text(if pass { "ok" } else { "no" })]
            }
            ModelKind::Builtin(BuiltinModel::Tool) => vec![tool_part(context)],
            ModelKind::Builtin(BuiltinModel::Huge) => {
                vec![Content::text("All work and no play. ".repeat(HUGE_BYTES / 22 + 1))]
            }
            ModelKind::Builtin(BuiltinModel::Fault(fault)) => return Draft::Broken(fault),
            ModelKind::Builtin(BuiltinModel::Prose) => vec![prose_part(context)],
        },
    };
    Draft::Answer(finish(content, context))
}

/// Next step of a model with planned tool calls.
enum PlanStep {
    /// The next call.
    Call(Content),
    /// Result of the last call, after all calls were made.
    LastResult(String),
}

/// Returns the next step of a model with planned calls: one call per tool result since the last user message.
fn plan_step(context: &AnswerContext<'_>) -> Option<PlanStep> {
    let definition = context.definition.filter(|definition| !definition.calls.is_empty())?;
    let messages = &context.request.messages;
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    let since = messages.iter().rposition(is_user).map_or(0, |at| at + 1);
    let is_result = |message: &&Message| matches!(message, Message::ToolResult { .. });
    let results = messages[since..].iter().filter(is_result).count();
    let last = || messages[since..].iter().rfind(is_result).map(Message::text).unwrap_or_default();
    Some(match definition.calls.get(results) {
        Some(call) => PlanStep::Call(tool::planned_call(call, context.key)),
        None => PlanStep::LastResult(last()),
    })
}

/// Returns the prepared answer, right or wrong.
fn prepared_answer<'a>(context: &AnswerContext<'a>) -> Option<&'a str> {
    let definition = context.definition?;
    let (right, share) = definition.right(&last_user_text(context.request))?;
    Some(if context.key.rng("answer").random::<f64>() < share { right } else { definition.wrong() })
}

/// Converts the answer of a behaviour to content.
fn custom_part(answer: ModelAnswer, context: &AnswerContext<'_>) -> Content {
    let hints = answer.number.map(|number| FillHints { number, text: number.to_string() });
    let content = hints.and_then(|hints| structured(context, &hints));
    content.unwrap_or_else(|| Content::text(answer.text))
}

fn prose_part(context: &AnswerContext<'_>) -> Content {
    let quality = context.definition.and_then(|definition| definition.quality);
    let quality = quality.unwrap_or_else(|| prose::quality(context.name));
    let text = || prose::text(&mut context.key.rng("answer"), quality);
    let hints = FillHints { number: 1, text: "text".into() };
    structured(context, &hints).unwrap_or_else(|| Content::text(text()))
}

fn tool_part(context: &AnswerContext<'_>) -> Content {
    if let Some(result @ Message::ToolResult { .. }) = context.request.messages.last() {
        return Content::text(result.text());
    }
    let mut text = last_user_text(context.request);
    tokens::truncate(&mut text, 50);
    let hints = FillHints { number: 1, text };
    match tool::chosen(context.request) {
        Some(tool) => tool::call(tool, &hints, context.key),
        None => prose_part(context),
    }
}

/// Returns the text of the last user message, and a line with type and size of each of its images and files.
fn echo(request: &Request) -> String {
    let message = request.messages.iter().rev().find(|it| matches!(it, Message::User { .. }));
    let parts = message.map(Message::content).unwrap_or_default();
    let describe = |part: &Content| match part {
        Content::Image { source: ImageSource::Base64 { media_type, data } }
        | Content::File { media_type, data, .. } => {
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            Some(format!("[{media_type}, {bytes} bytes]"))
        }
        Content::Image { source: ImageSource::Url { url } } => Some(format!("[{url}]")),
        _ => None,
    };
    let lines: Vec<String> =
        std::iter::once(last_user_text(request)).chain(parts.iter().filter_map(describe)).collect();
    lines.join("\n")
}

/// Returns the answer as a tool call or JSON, if the request demands one.
fn structured(context: &AnswerContext<'_>, hints: &FillHints) -> Option<Content> {
    if let Some(tool) = tool::required(context.request) {
        return Some(tool::call(tool, hints, context.key));
    }
    match context.request.output.as_ref()? {
        OutputFormat::Json => Some(Content::text("{}")),
        OutputFormat::Schema { schema, .. } => {
            Some(Content::text(fill::fill(schema, hints).to_string()))
        }
    }
}

/// Adds thinking and token counts, and truncates the answer to the maximum length.
fn finish(mut content: Vec<Content>, context: &AnswerContext<'_>) -> Response {
    let AnswerContext { request, key, .. } = context;
    let max_tokens = request.max_tokens.unwrap_or(u64::MAX);
    let mut finish = if content.iter().any(|part| matches!(part, Content::ToolCall(_))) {
        FinishReason::ToolCalls
    } else {
        FinishReason::Stop
    };
    let mut reasoning = 0;
    if thinks(request.thinking.as_ref()) {
        let mut thought = prose::thought(&mut key.rng("thinking"));
        tokens::truncate(&mut thought, max_tokens);
        reasoning = tokens::count(&thought).min(max_tokens);
        let signature = Some(format!("sim-{}", key.hex()));
        content.insert(0, Content::Thinking { text: thought, signature });
    }
    let left = max_tokens - reasoning;
    let mut rng = key.rng("tokens");
    let input = context.input_tokens.map(|count| count.sample(&mut rng));
    let given = context.output_tokens.map(|count| count.sample(&mut rng));
    let mut counted = 0_u64;
    for part in &mut content {
        match part {
            Content::Text { text } => {
                let tokens = tokens::count(text);
                if tokens > left {
                    tokens::truncate(text, left);
                    finish = FinishReason::Length;
                }
                counted = counted.saturating_add(tokens.min(left));
            }
            Content::ToolCall(call) => {
                counted = counted.saturating_add(tokens::count(&call.name));
                counted = counted.saturating_add(tokens::count(&call.arguments.to_string()));
            }
            Content::Thinking { .. }
            | Content::Image { .. }
            | Content::File { .. }
            | Content::Opaque { .. } => {}
        }
    }
    if given.is_some_and(|given| given > max_tokens) {
        finish = FinishReason::Length;
    }
    let output = given.map_or(counted.saturating_add(reasoning), |given| given.min(max_tokens));
    Response {
        id: Some(format!("sim-{}", key.hex())),
        model: Some(request.model.clone()),
        content,
        finish,
        usage: Usage {
            input: input.unwrap_or_else(|| tokens::count_prompt(&request.messages)),
            output,
            reasoning: reasoning.min(output),
            ..Usage::default()
        },
        extra: serde_json::Map::new(),
    }
}

fn thinks(thinking: Option<&Thinking>) -> bool {
    match thinking {
        None | Some(Thinking::Budget(0)) => false,
        Some(Thinking::Effort(effort)) => effort != "none",
        Some(Thinking::Budget(_)) => true,
    }
}

#[cfg(test)]
mod tests;
