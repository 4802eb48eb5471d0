//! Images, documents and recordings in each wire format.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use bakeoff_core::{Content, ImageSource, Message, Request};
use bakeoff_llm::Wire;
use serde_json::{Value, json};

const MEDIA: [&str; 12] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/gif",
    "image/heic",
    "application/pdf",
    "audio/wav",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
];

fn content(media_type: &str) -> Content {
    let (media_type, data) = (media_type.to_owned(), "AAAA".to_owned());
    match media_type.starts_with("image/") {
        true => Content::Image { source: ImageSource::Base64 { media_type, data } },
        false => Content::File { name: "file".to_owned(), media_type, data },
    }
}

/// Returns the parts of a user message with this content and a text.
fn parts(wire: Wire, media_type: &str) -> Value {
    let content = vec![content(media_type), Content::text("What is it?")];
    let messages = vec![Message::User { content }];
    let request = Request { model: "m".to_owned(), messages, ..Request::default() };
    let body: Value = serde_json::from_slice(&wire.encode(&request)).unwrap();
    let pointer = match wire {
        Wire::OpenAiChat | Wire::Anthropic => "/messages/0/content",
        Wire::OpenAiResponses => "/input/0/content",
        Wire::Gemini => "/contents/0/parts",
    };
    body.pointer(pointer).unwrap().clone()
}

#[test]
fn files_precede_the_text_in_the_parts_of_each_format() {
    let table = [
        (
            Wire::OpenAiChat,
            "image/png",
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        ),
        (
            Wire::OpenAiChat,
            "application/pdf",
            json!({"type": "file", "file": {"filename": "file", "file_data": "data:application/pdf;base64,AAAA"}}),
        ),
        (
            Wire::OpenAiChat,
            "audio/wav",
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
        ),
        (
            Wire::OpenAiChat,
            "audio/mpeg",
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}),
        ),
        (
            Wire::OpenAiResponses,
            "image/png",
            json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}),
        ),
        (
            Wire::OpenAiResponses,
            "application/pdf",
            json!({"type": "input_file", "filename": "file", "file_data": "data:application/pdf;base64,AAAA"}),
        ),
        (
            Wire::Anthropic,
            "image/png",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
        ),
        (
            Wire::Anthropic,
            "application/pdf",
            json!({"type": "document", "title": "file", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}),
        ),
        (
            Wire::Gemini,
            "image/png",
            json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
        ),
        (
            Wire::Gemini,
            "application/pdf",
            json!({"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}}),
        ),
        (
            Wire::Gemini,
            "audio/mpeg",
            json!({"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}}),
        ),
    ];
    for (wire, media_type, expected) in table {
        let parts = parts(wire, media_type);
        assert_eq!(parts[0], expected, "{wire} {media_type}");
        assert_eq!(parts[1]["text"], "What is it?", "{wire} {media_type}");
    }
}

#[test]
fn accepted_media_types_differ_by_format() {
    let rejected = |wire: Wire| {
        MEDIA.into_iter().filter(|media| !wire.accepts_media(media)).collect::<Vec<_>>()
    };
    let other_audio = ["audio/aiff", "audio/aac", "audio/ogg", "audio/flac"];
    assert_eq!(rejected(Wire::OpenAiChat), [&["image/heic"][..], &other_audio].concat());
    let no_audio = [&["image/heic", "audio/wav", "audio/mpeg"][..], &other_audio].concat();
    assert_eq!(rejected(Wire::OpenAiResponses), no_audio);
    assert_eq!(rejected(Wire::Anthropic), no_audio);
    assert_eq!(rejected(Wire::Gemini), ["image/gif"]);
    assert!(Wire::ALL.iter().all(|wire| !wire.accepts_media("text/plain")));
}
