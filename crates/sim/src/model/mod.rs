//! What the simulated models say.
//!
//! A model's name says what it does ([`Model::named`]); [`draft`] writes its answer. Nothing here
//! knows about limits or time.

mod fill;
mod item;
mod judge;
mod mischief;
mod name;
mod packed;
mod prose;
mod tool;

pub(crate) use name::{Model, error_words};

use crate::ask::Fault;
use crate::key::Key;
use crate::{Persona, TokenCount, tokens};
use bakeoff_core::{
    Content, FinishReason, Message, OutputFormat, Request, Response, Thinking, Usage,
};
use fill::Hints;
use rand::RngExt;

/// Length of the text of `fault-huge`.
const HUGE_BYTES: usize = 12 << 20;

/// What a model makes of a request, before anybody asks whether it may.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Draft {
    Answer(Response),
    Broken(Fault),
}

/// What an answer depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// The model's name without the prefix `sim/`.
    pub(crate) name: &'a str,
    pub(crate) persona: Option<&'a Persona>,
    pub(crate) request: &'a Request,
    pub(crate) key: Key,
    /// Token counts that stand above the counted ones.
    pub(crate) input_tokens: Option<TokenCount>,
    pub(crate) output_tokens: Option<TokenCount>,
}

/// Writes the model's answer.
pub(crate) fn draft(model: Model, scene: &Scene<'_>) -> Draft {
    let content = match (planned(scene), canned(scene)) {
        (Some(Planned::Call(call)), _) => vec![call],
        (_, Some(text)) => vec![Content::text(text)],
        (Some(Planned::Returned(text)), None) => vec![Content::text(text)],
        (None, None) => match model {
            // The engine refuses for these two; what is left of them echoes.
            Model::Echo | Model::Slow | Model::Flaky(_) | Model::Status(_) => {
                vec![Content::text(last_user_text(scene.request))]
            }
            Model::Pass(share) => {
                let pass = scene.key.rng("answer").random::<f64>() < share;
                vec![Content::text(if pass { "ok" } else { "no" })]
            }
            Model::Judge => vec![judge_part(scene)],
            Model::Tool => vec![tool_part(scene)],
            Model::Huge => {
                vec![Content::text("All work and no play. ".repeat(HUGE_BYTES / 22 + 1))]
            }
            Model::Packed(mischief) => {
                let prompt = first_user_text(scene.request);
                vec![Content::text(packed::reply(&prompt, mischief, &mut scene.key.rng("packed")))]
            }
            Model::Fault(fault) => return Draft::Broken(fault),
            Model::Prose => vec![prose_part(scene)],
        },
    };
    Draft::Answer(finish(content, scene))
}

/// Where a persona is in its plan.
enum Planned {
    /// The next of its calls.
    Call(Content),
    /// All were made, and this is what the last returned.
    Returned(String),
}

/// What comes next, of a persona that calls tools: one call for each result since the user spoke.
fn planned(scene: &Scene<'_>) -> Option<Planned> {
    let persona = scene.persona.filter(|persona| !persona.calls.is_empty())?;
    let messages = &scene.request.messages;
    let is_user = |message: &Message| matches!(message, Message::User { .. });
    let since = messages.iter().rposition(is_user).map_or(0, |at| at + 1);
    let is_result = |message: &&Message| matches!(message, Message::ToolResult { .. });
    let made = messages[since..].iter().filter(is_result).count();
    let last = || messages[since..].iter().rfind(is_result).map(Message::text).unwrap_or_default();
    Some(match persona.calls.get(made) {
        Some(call) => Planned::Call(tool::planned(call, scene.key)),
        None => Planned::Returned(last()),
    })
}

/// What the persona has prepared, right or wrong.
fn canned<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    let persona = scene.persona?;
    let (right, share) = persona.right(&last_user_text(scene.request))?;
    Some(if scene.key.rng("answer").random::<f64>() < share { right } else { persona.wrong() })
}

fn judge_part(scene: &Scene<'_>) -> Content {
    let persona = scene.persona;
    let mut eye = judge::Eye {
        bias: persona.and_then(|persona| persona.bias).unwrap_or(0.0),
        noise: persona.and_then(|persona| persona.noise).unwrap_or(0.0),
        random: Some(scene.key.rng("noise")),
    };
    let text = last_user_text(scene.request);
    let (number, words) = if let Some((number, sentence)) = judge::choice(&text, &mut eye) {
        let vote = if number == 0 { "tie".to_owned() } else { number.to_string() };
        (number, format!("{sentence}\n{vote}"))
    } else if let Some(verdict) = judge::verdict(&text) {
        return Content::text(verdict.to_string());
    } else {
        let number = judge::best(&text, &mut eye);
        (number, number.to_string())
    };
    let hints =
        Hints { number: i64::try_from(number).unwrap_or(i64::MAX), text: number.to_string() };
    shaped(scene, &hints).unwrap_or_else(|| Content::text(words))
}

fn prose_part(scene: &Scene<'_>) -> Content {
    let quality = scene.persona.and_then(|persona| persona.quality);
    let quality = quality.unwrap_or_else(|| prose::quality(scene.name));
    let text = || prose::text(&mut scene.key.rng("answer"), quality);
    let hints = Hints { number: 1, text: "text".into() };
    shaped(scene, &hints).unwrap_or_else(|| Content::text(text()))
}

fn tool_part(scene: &Scene<'_>) -> Content {
    if let Some(result @ Message::ToolResult { .. }) = scene.request.messages.last() {
        return Content::text(result.text());
    }
    let mut text = last_user_text(scene.request);
    tokens::cut(&mut text, 50);
    let hints = Hints { number: 1, text };
    match tool::chosen(scene.request) {
        Some(tool) => tool::call(tool, &hints, scene.key),
        None => prose_part(scene),
    }
}

/// The answer in the shape that the request demands, if it demands one: a tool call or JSON.
fn shaped(scene: &Scene<'_>, hints: &Hints) -> Option<Content> {
    if let Some(tool) = tool::demanded(scene.request) {
        return Some(tool::call(tool, hints, scene.key));
    }
    match scene.request.output.as_ref()? {
        OutputFormat::Json => Some(Content::text("{}")),
        OutputFormat::Schema { schema, .. } => {
            Some(Content::text(fill::fill(schema, hints).to_string()))
        }
    }
}

/// Adds thinking and tokens, and cuts what is longer than allowed.
fn finish(mut content: Vec<Content>, scene: &Scene<'_>) -> Response {
    let Scene { request, key, .. } = scene;
    let most = request.max_tokens.unwrap_or(u64::MAX);
    let mut finish = if content.iter().any(|part| matches!(part, Content::ToolCall(_))) {
        FinishReason::ToolCalls
    } else {
        FinishReason::Stop
    };
    let mut reasoning = 0;
    if thinks(request.thinking.as_ref()) {
        let mut thought = prose::thought(&mut key.rng("thinking"));
        tokens::cut(&mut thought, most);
        reasoning = tokens::count(&thought).min(most);
        let signature = Some(format!("sim-{}", key.hex()));
        content.insert(0, Content::Thinking { text: thought, signature });
    }
    let left = most - reasoning;
    let mut rng = key.rng("tokens");
    let input = scene.input_tokens.map(|count| count.sample(&mut rng));
    let given = scene.output_tokens.map(|count| count.sample(&mut rng));
    let mut said = 0_u64;
    for part in &mut content {
        match part {
            Content::Text { text } => {
                let tokens = tokens::count(text);
                if tokens > left {
                    tokens::cut(text, left);
                    finish = FinishReason::Length;
                }
                said = said.saturating_add(tokens.min(left));
            }
            Content::ToolCall(call) => {
                said = said.saturating_add(tokens::count(&call.name));
                said = said.saturating_add(tokens::count(&call.arguments.to_string()));
            }
            Content::Thinking { .. } | Content::Image { .. } | Content::Opaque { .. } => {}
        }
    }
    if given.is_some_and(|given| given > most) {
        finish = FinishReason::Length;
    }
    let output = given.map_or(said.saturating_add(reasoning), |given| given.min(most));
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

/// What the user said last; empty when the user has said nothing.
fn last_user_text(request: &Request) -> String {
    let is_user = |message: &&Message| matches!(message, Message::User { .. });
    request.messages.iter().rev().find(is_user).map(Message::text).unwrap_or_default()
}

/// What the user said first.
fn first_user_text(request: &Request) -> String {
    let is_user = |message: &&Message| matches!(message, Message::User { .. });
    request.messages.iter().find(is_user).map(Message::text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
