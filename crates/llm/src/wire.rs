//! How do providers write requests and answers?
//!
//! Four formats, each turned into and out of the words of `bakeoff-core`. No HTTP here: bytes in,
//! bytes out, so that the client, the cache and the tests all read the same way.

mod anthropic;
mod body;
mod error;
mod gemini;
mod openai_chat;
mod openai_responses;
mod stream;

pub use error::{DecodeError, KeyError, StreamError};
pub use stream::{Delta, StreamDecoder};

use bakeoff_core::{Request, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};

/// A format that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's Chat Completions, which most other providers speak too.
    ///
    /// The limit of tokens is sent as `max_completion_tokens` to models named like OpenAI's
    /// reasoning models (`o1…`, `o3…`, `o4…`, `gpt-5…`), which refuse `max_tokens`, and as
    /// `max_tokens` to all others, because many compatible servers know only that one.
    OpenAiChat,
    /// OpenAI's Responses. It has no stop texts and no seed, so they are not sent.
    OpenAiResponses,
    /// Anthropic's Messages. It has no seed and no schema-less JSON, so they are not sent.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Wire {
    /// The path of a request, to be added to the provider's base URL.
    pub fn path(self, request: &Request) -> String {
        match self {
            Wire::OpenAiChat => "/chat/completions".to_owned(),
            Wire::OpenAiResponses => "/responses".to_owned(),
            Wire::Anthropic => "/messages".to_owned(),
            Wire::Gemini => gemini::path(request),
        }
    }

    /// The headers that carry the key, marked as secret.
    ///
    /// # Errors
    ///
    /// When the key has bytes that no header may have, such as a line feed.
    pub fn auth_headers(self, key: &str) -> Result<Vec<(HeaderName, HeaderValue)>, KeyError> {
        let (name, value) = match self {
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                (header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {key}")))
            }
            Wire::Anthropic => (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key)),
            Wire::Gemini => (HeaderName::from_static("x-goog-api-key"), HeaderValue::from_str(key)),
        };
        let mut value = value.map_err(|_| KeyError)?;
        value.set_sensitive(true);
        Ok(vec![(name, value)])
    }

    /// The headers that every request has; none is secret.
    pub fn headers(self) -> Vec<(HeaderName, HeaderValue)> {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self {
            Wire::Anthropic => vec![json, anthropic::VERSION],
            Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Gemini => vec![json],
        }
    }

    /// The JSON body of a request.
    ///
    /// [`Request::extra`] is merged in last: its objects are merged with Bakeoff's own at any
    /// depth, and everything else of it replaces.
    pub fn encode(self, request: &Request) -> Bytes {
        let json = match self {
            Wire::OpenAiChat => openai_chat::encode(request),
            Wire::OpenAiResponses => openai_responses::encode(request),
            Wire::Anthropic => anthropic::encode(request),
            Wire::Gemini => gemini::encode(request),
        };
        Bytes::from(json)
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    ///
    /// When it is not an answer of this format, or an error that came with a good status.
    pub fn decode(self, body: &[u8]) -> Result<Response, DecodeError> {
        match self {
            Wire::OpenAiChat => openai_chat::decode(body),
            Wire::OpenAiResponses => openai_responses::decode(body),
            Wire::Anthropic => anthropic::decode(body),
            Wire::Gemini => gemini::decode(body),
        }
    }

    /// A decoder at the start of a streamed answer.
    pub fn stream(self) -> StreamDecoder {
        StreamDecoder::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Wire; 4] = [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini];

    #[test]
    fn keys_travel_in_the_header_of_the_provider_and_are_secret() {
        let expected = [
            ("authorization", "Bearer k3y"),
            ("authorization", "Bearer k3y"),
            ("x-api-key", "k3y"),
            ("x-goog-api-key", "k3y"),
        ];
        for (wire, (name, value)) in ALL.into_iter().zip(expected) {
            let headers = wire.auth_headers("k3y").unwrap();
            assert_eq!(headers.len(), 1);
            assert_eq!((headers[0].0.as_str(), headers[0].1.to_str().unwrap()), (name, value));
            assert!(headers[0].1.is_sensitive());
            assert!(!format!("{headers:?}").contains("k3y"));
        }
    }

    #[test]
    fn a_key_that_fits_no_header_is_refused_without_being_shown() {
        for wire in ALL {
            let error = wire.auth_headers("sk-secret\n").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn fixed_headers() {
        for wire in ALL {
            let names: Vec<_> =
                wire.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            let version = r#"anthropic-version: "2023-06-01""#.to_owned();
            assert!(names.contains(&r#"content-type: "application/json""#.to_owned()));
            assert_eq!(names.contains(&version), wire == Wire::Anthropic);
        }
    }

    #[test]
    fn paths() {
        let request =
            |model: &str, stream| Request { model: model.to_owned(), stream, ..Request::default() };
        let cases = [
            (Wire::OpenAiChat, request("m", false), "/chat/completions"),
            (Wire::OpenAiResponses, request("m", true), "/responses"),
            (Wire::Anthropic, request("m", true), "/messages"),
            (Wire::Gemini, request("gemini-3-pro", false), "/models/gemini-3-pro:generateContent"),
            (Wire::Gemini, request("g", true), "/models/g:streamGenerateContent?alt=sse"),
            (Wire::Gemini, request("models/g", false), "/models/g:generateContent"),
            (Wire::Gemini, request("tunedModels/g", false), "/tunedModels/g:generateContent"),
            (Wire::Gemini, request("g?x=1#y", false), "/models/g%3Fx%3D1%23y:generateContent"),
        ];
        for (wire, request, path) in cases {
            assert_eq!(wire.path(&request), path);
        }
    }
}
