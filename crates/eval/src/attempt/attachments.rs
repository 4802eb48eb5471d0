//! Attachments of a case: content for models, files for programs.

use crate::trial::failed;
use bakeoff_core::{Attempt, Content, ErrorKind, ImageSource, Message};
use bakeoff_suite::{Attachment, Case};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Attachments as content of a message.
#[derive(Debug, Default)]
pub(super) struct LoadedAttachments {
    /// Images and files, which precede the prompt.
    content: Vec<Content>,
    /// Stand-ins for traces: names, types, sizes and hashes.
    records: Vec<Value>,
}

impl LoadedAttachments {
    /// Reads the attachments of a case.
    pub(super) async fn load(case: &Case) -> Result<LoadedAttachments, Attempt> {
        let mut loaded = LoadedAttachments::default();
        for attachment in &case.attachments {
            let file = attachment.clone();
            let read =
                tokio::task::spawn_blocking(move || file.read().map(|bytes| encode(&file, &bytes)));
            let read = match read.await {
                Ok(read) => read,
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            };
            let (content, record) = read.map_err(|error| {
                failed(ErrorKind::Template, format!("attachment {}: {error}", attachment.name))
            })?;
            loaded.content.push(content);
            loaded.records.push(record);
        }
        Ok(loaded)
    }

    /// Returns the user message with a prompt and the attachments.
    pub(super) fn message(self, prompt: String) -> Message {
        let mut content = self.content;
        content.push(Content::text(prompt));
        Message::User { content }
    }

    /// Returns the message as it is stored in traces, without the content of files.
    pub(super) fn record(&self, prompt: &str) -> Message {
        let stand_ins = self.records.iter().map(|value| Content::Opaque { value: value.clone() });
        Message::User { content: stand_ins.chain([Content::text(prompt)]).collect() }
    }

    pub(super) fn records(&self) -> &[Value] {
        &self.records
    }
}

fn encode(attachment: &Attachment, bytes: &[u8]) -> (Content, Value) {
    let (media_type, data) = (attachment.media_type.to_owned(), STANDARD.encode(bytes));
    let content = match media_type.starts_with("image/") {
        true => Content::Image { source: ImageSource::Base64 { media_type, data } },
        false => Content::File { name: file_name(attachment), media_type, data },
    };
    let record = json!({
        "type": "attachment",
        "path": attachment.name,
        "media_type": attachment.media_type,
        "bytes": bytes.len(),
        "blake3": Attachment::digest_of(bytes),
    });
    (content, record)
}

fn file_name(attachment: &Attachment) -> String {
    let name = Path::new(&attachment.name).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Copies attachments to their relative paths in a folder, which may be a copy of the user's files with links in it.
/// Blocks.
pub(super) fn copy_attachments(attachments: &[Attachment], folder: &Path) -> io::Result<()> {
    for attachment in attachments {
        let target = folder.join(&attachment.name);
        let parent = target.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)?;
        if !parent.canonicalize()?.starts_with(folder.canonicalize()?) {
            let message = format!("{} leads out of the workspace", attachment.name);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        // A link is replaced rather than followed.
        match std::fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::copy(&attachment.path, &target)?;
    }
    Ok(())
}

/// Returns the absolute paths of the attachments of a case.
pub(super) fn absolute_paths(case: &Case) -> Vec<PathBuf> {
    let absolute = |file: &Attachment| std::path::absolute(&file.path).unwrap_or(file.path.clone());
    case.attachments.iter().map(absolute).collect()
}
