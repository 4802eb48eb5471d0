//! OpenAI Responses.

mod decode;
mod encode;
mod stream;

pub(super) use decode::decode;
pub(super) use encode::encode;
pub(super) use stream::StreamAssembler;
