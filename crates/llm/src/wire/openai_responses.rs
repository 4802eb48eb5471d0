//! OpenAI Responses.
//!
//! Responses are not stored at the provider (`store` is false). Reasoning is therefore requested in encrypted
//! form and sent back with the tool calls that it belongs to.

mod decode;
mod encode;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::encode;
pub(super) use stream::StreamAssembler;

use bakeoff_core::Content;
use serde_json::{Value, json};

/// Returns the phase of the message whose text follows: `commentary` or `final_answer`. The provider asks to
/// send it back with the message.
fn phase_marker(phase: &str) -> Content {
    Content::Opaque { value: json!({"type": "message", "phase": phase}) }
}

/// Returns the phase of a value made by [`phase_marker`].
fn marked_phase(value: &Value) -> Option<&str> {
    match (value["type"].as_str(), value.get("content")) {
        (Some("message"), None) => value["phase"].as_str(),
        _ => None,
    }
}
