//! Answers that come in pieces.

use super::{StreamError, Wire, anthropic, gemini, openai_chat, openai_responses};
use crate::sse::{SseEvent, SseParser};
use bakeoff_core::Response;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More of the text.
    Text(String),
    /// More of what the model thinks.
    Thinking(String),
    /// The model starts to call a tool.
    ToolCallStart {
        /// Which of the answer's calls, from 0.
        index: usize,
        /// Id of the call.
        id: String,
        /// Which tool.
        name: String,
    },
    /// More of the arguments of a call, as JSON text.
    ToolCallArguments {
        /// Which of the answer's calls, from 0.
        index: usize,
        /// The piece of JSON.
        json: String,
    },
}

/// Reads a streamed answer as its bytes arrive.
#[derive(Debug)]
pub struct StreamDecoder {
    sse: SseParser,
    events: Vec<SseEvent>,
    state: State,
    failed: Option<StreamError>,
}

#[derive(Debug)]
enum State {
    OpenAiChat(Box<openai_chat::Stream>),
    OpenAiResponses(Box<openai_responses::Stream>),
    Anthropic(Box<anthropic::Stream>),
    Gemini(Box<gemini::Stream>),
}

impl StreamDecoder {
    pub(super) fn new(wire: Wire) -> Self {
        let state = match wire {
            Wire::OpenAiChat => State::OpenAiChat(Box::default()),
            Wire::OpenAiResponses => State::OpenAiResponses(Box::default()),
            Wire::Anthropic => State::Anthropic(Box::default()),
            Wire::Gemini => State::Gemini(Box::default()),
        };
        StreamDecoder { sse: SseParser::new(), events: Vec::new(), state, failed: None }
    }

    /// Reads on, and gives the pieces that are new.
    ///
    /// # Errors
    ///
    /// After the first error every call fails the same way, [`finish`](Self::finish) too; pieces that
    /// came in the same bytes before it are not given.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, StreamError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut deltas = Vec::new();
        self.read(bytes, &mut deltas).inspect_err(|error| self.failed = Some(error.clone()))?;
        Ok(deltas)
    }

    fn read(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<(), StreamError> {
        let parsed = self.sse.feed(bytes, &mut self.events);
        for event in self.events.drain(..) {
            match &mut self.state {
                State::OpenAiChat(stream) => stream.event(&event, deltas)?,
                State::OpenAiResponses(stream) => stream.event(&event, deltas)?,
                State::Anthropic(stream) => stream.event(&event, deltas)?,
                State::Gemini(stream) => stream.event(&event, deltas)?,
            }
        }
        Ok(parsed?)
    }

    /// Whether the format's last event has come: nothing that follows belongs to the answer.
    /// Gemini has no such event; its streams end with the connection.
    pub fn is_complete(&self) -> bool {
        match &self.state {
            State::OpenAiChat(stream) => stream.is_complete(),
            State::OpenAiResponses(stream) => stream.is_complete(),
            State::Anthropic(stream) => stream.is_complete(),
            State::Gemini(_) => false,
        }
    }

    /// The whole answer, once the stream has ended.
    ///
    /// # Errors
    ///
    /// [`StreamError::Truncated`] when the stream ended before the answer did.
    pub fn finish(self) -> Result<Response, StreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        match self.state {
            State::OpenAiChat(stream) => stream.finish(),
            State::OpenAiResponses(stream) => stream.finish(),
            State::Anthropic(stream) => stream.finish(),
            State::Gemini(stream) => stream.finish(),
        }
    }
}
