//! Body of an HTTP/1.1 request that marks the time of sending.

use crate::transport::SendTime;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Body in one piece. The HTTP library reads it when the request has a connection, so the wait for one does
/// not count as latency.
pub(super) struct TimedBody {
    bytes: Bytes,
    sent: SendTime,
}

impl TimedBody {
    pub(super) fn new(bytes: Bytes, sent: SendTime) -> TimedBody {
        TimedBody { bytes, sent }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        self.sent.mark();
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
