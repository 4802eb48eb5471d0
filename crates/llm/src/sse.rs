//! Incremental parser for server-sent events.
//!
//! Follows the [WHATWG specification](https://html.spec.whatwg.org/multipage/server-sent-events.html).
//! Reconnecting is out of scope, so an event has only its own id and does not inherit that of earlier events.

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Event type; absent when the field is missing or empty.
    pub event: Option<String>,
    /// Data lines, joined by line feeds.
    pub data: String,
    /// Id.
    pub id: Option<String>,
    /// Milliseconds to wait before reconnecting.
    pub retry: Option<u64>,
}

/// Error in an event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// An event exceeds the size limit of the parser.
    #[error("server-sent event exceeds {limit} bytes")]
    TooLong {
        /// Maximum size of one event in bytes.
        limit: usize,
    },
    /// A field is not UTF-8.
    #[error("server-sent event is not UTF-8")]
    NotUtf8,
}

/// Push parser that accepts bytes in chunks of any size.
///
/// ```
/// use bakeoff_llm::sse::SseParser;
///
/// let mut parser = SseParser::new();
/// let mut events = Vec::new();
/// parser.feed(b"event: greeting\ndata: hel", &mut events)?;
/// assert!(events.is_empty());
/// parser.feed(b"lo\n\n", &mut events)?;
/// assert_eq!(events[0].event.as_deref(), Some("greeting"));
/// assert_eq!(events[0].data, "hello");
/// # Ok::<(), bakeoff_llm::sse::SseError>(())
/// ```
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// Start of a line that is not complete yet.
    line: Vec<u8>,
    /// Data lines of the current event, each with its line feed.
    data: Vec<u8>,
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    /// Whether a line feed at the start of the next chunk belongs to the previous carriage return.
    skip_line_feed: bool,
    /// Whether no line has ended yet; the first line may start with a byte order mark.
    is_first_line: bool,
    error: Option<SseError>,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl SseParser {
    /// Default size limit of one event in bytes, far above the size of any response.
    pub const DEFAULT_LIMIT: usize = 16 << 20;

    /// Creates a parser with the default limit.
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// Creates a parser that accepts at most `limit` bytes per event.
    pub fn with_limit(limit: usize) -> Self {
        SseParser {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            event: None,
            id: None,
            retry: None,
            skip_line_feed: false,
            is_first_line: true,
            error: None,
        }
    }

    /// Parses the next bytes and appends the completed events to `events`.
    ///
    /// An event that is not terminated when the stream ends is discarded, as the specification requires.
    ///
    /// # Errors
    ///
    /// Every call after the first error returns the same error. Events before it are appended.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.skip_line_feed) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = line_end(bytes) else {
                self.check_size(bytes.len())?;
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.check_size(end)?;
            let event = if self.line.is_empty() {
                self.end_line(&bytes[..end])
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                let event = self.end_line(&line);
                line.clear();
                self.line = line;
                event
            };
            events.extend(event?);
            self.skip_line_feed = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn fail<T>(&mut self, error: SseError) -> Result<T, SseError> {
        self.error = Some(error);
        Err(error)
    }

    /// Fails if `added` more bytes would exceed the limit.
    fn check_size(&mut self, added: usize) -> Result<(), SseError> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let buffered = self.line.len() + self.data.len() + length(&self.event) + length(&self.id);
        if added > self.limit.saturating_sub(buffered) {
            return self.fail(SseError::TooLong { limit: self.limit });
        }
        Ok(())
    }

    fn end_line(&mut self, mut line: &[u8]) -> Result<Option<SseEvent>, SseError> {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = Some(self.utf8(value)?),
            b"id" if !value.contains(&0) => self.id = Some(self.utf8(value)?),
            b"retry" => self.retry = parse_digits(value).or(self.retry),
            // Comments and unknown fields are ignored.
            _ => {}
        }
        Ok(None)
    }

    fn utf8(&mut self, value: &[u8]) -> Result<String, SseError> {
        match std::str::from_utf8(value) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => self.fail(SseError::NotUtf8),
        }
    }

    fn end_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        let event = self.event.take().filter(|event| !event.is_empty());
        let (id, retry) = (self.id.take(), self.retry.take());
        // A block without a data line is no event; one with an empty data line is an event without text.
        if self.data.pop().is_none() {
            return Ok(None);
        }
        match String::from_utf8(std::mem::take(&mut self.data)) {
            Ok(data) => Ok(Some(SseEvent { event, data, id, retry })),
            Err(_) => self.fail(SseError::NotUtf8),
        }
    }
}

/// Returns the position of the first line end.
fn line_end(bytes: &[u8]) -> Option<usize> {
    // Checking whole blocks without a branch per byte lets the compiler use vector instructions.
    const BLOCK: usize = 32;
    let is_end = |byte: u8| (byte == b'\n') | (byte == b'\r');
    let mut start = 0;
    for block in bytes.chunks_exact(BLOCK) {
        if block.iter().fold(false, |hit, &byte| hit | is_end(byte)) {
            break;
        }
        start += BLOCK;
    }
    bytes[start..].iter().position(|&byte| is_end(byte)).map(|at| start + at)
}

fn parse_digits(value: &[u8]) -> Option<u64> {
    // `u64::from_str` would also accept a plus sign.
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        SseParser::new().feed(bytes, &mut events).map(|()| events)
    }

    fn data(texts: &[&str]) -> Vec<SseEvent> {
        texts.iter().map(|&data| SseEvent { data: data.into(), ..Default::default() }).collect()
    }

    #[test]
    fn empty_line_ends_event_for_all_line_endings() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"", &[]),
            (b"\n\n\n", &[]),
            (b"data: a\n\n", &["a"]),
            (b"data: a\r\r", &["a"]),
            (b"data: a\r\n\r\n", &["a"]),
            (b"data: a\n\r\n", &["a"]),
            (b"data: a\r\n\n", &["a"]),
            (b"data: a\n\ndata: b\n\n", &["a", "b"]),
            (b"data: a\ndata: b\n\n", &["a\nb"]),
            (b"data:a\n\n", &["a"]),
            (b"data:  a\n\n", &[" a"]),
            (b"data:\ta\n\n", &["\ta"]),
            (b"data: a:b\n\n", &["a:b"]),
            (b"data\n\n", &[""]),
            (b"data:\n\n", &[""]),
            (b"data\ndata\n\n", &["\n"]),
            (b": ping\n\n", &[]),
            (b": ping\ndata: a\n:\n\n", &["a"]),
            (b"datas: x\nDATA: x\n data: x\n\n", &[]),
            (b"event: x\n\ndata: a\n\n", &["a"]),
            (b"event:\ndata: a\n\n", &["a"]),
            (b"data: a\n", &[]),
            (b"data: a", &[]),
            (b"\xEF\xBB\xBFdata: a\n\n", &["a"]),
            (b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &[]),
            (b"\n\xEF\xBB\xBFdata: a\n\n", &[]),
            (b": \xff\nx\xff: \xff\ndata: a\n\n", &["a"]),
            (
                b"data: 0123456789012345678901234567890123456789\n\n",
                &["0123456789012345678901234567890123456789"],
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(parse(bytes), Ok(data(expected)), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn event_id_and_retry_fields_are_parsed() {
        let event = |text: &str| parse(text.as_bytes()).unwrap().remove(0);
        assert_eq!(
            event("event: a\nid: 7\nretry: 100\ndata: x\n\n"),
            SseEvent {
                event: Some("a".into()),
                data: "x".into(),
                id: Some("7".into()),
                retry: Some(100)
            }
        );
        assert_eq!(event("event: a\nevent: b\ndata\n\n").event.as_deref(), Some("b"));
        assert_eq!(event("id: 7\nid: \0\ndata\n\n").id.as_deref(), Some("7"));
        assert_eq!(event("retry: 5\nretry: +6\nretry: 7s\nretry:\ndata\n\n").retry, Some(5));
        assert_eq!(event("id: 7\ndata\n\ndata\n\n").id.as_deref(), Some("7"));
        assert_eq!(parse(b"id: 7\ndata\n\ndata\n\n").unwrap()[1].id, None);
    }

    #[test]
    fn chunk_boundaries_do_not_change_events() {
        let stream = "\u{feff}data: a\r\ndata: ü\r\n\r\n: x\revent: e\rdata: b\r\r\ndata: c\n\n";
        let whole = parse(stream.as_bytes()).unwrap();
        assert_eq!(whole.len(), 3);
        for cut in 0..=stream.len() {
            let (left, right) = stream.as_bytes().split_at(cut);
            let (mut parser, mut events) = (SseParser::new(), Vec::new());
            parser.feed(left, &mut events).unwrap();
            parser.feed(right, &mut events).unwrap();
            assert_eq!(events, whole, "cut at {cut}");
        }
    }

    #[test]
    fn invalid_utf8_error_persists() {
        for bytes in [&b"data: a\n\ndata: \xff\n\n"[..], b"data: a\n\nevent: \xff\n"] {
            let (mut parser, mut events) = (SseParser::new(), Vec::new());
            assert_eq!(parser.feed(bytes, &mut events), Err(SseError::NotUtf8));
            assert_eq!(events, data(&["a"]), "events before the error are kept");
            assert_eq!(parser.feed(b"data: b\n\n", &mut events), Err(SseError::NotUtf8));
        }
    }

    #[test]
    fn oversized_event_is_rejected() {
        let feed = |chunks: &[&[u8]]| {
            let (mut parser, mut events) = (SseParser::with_limit(10), Vec::new());
            chunks.iter().try_for_each(|chunk| parser.feed(chunk, &mut events))
        };
        let too_long = Err(SseError::TooLong { limit: 10 });
        assert_eq!(feed(&[b"data: 2345\n\ndata: 2345\n\n"]), Ok(()));
        assert_eq!(feed(&[b"data: 23456\n\n"]), too_long);
        assert_eq!(feed(&[b"data: ", b"23456"]), too_long);
        assert_eq!(feed(&[b"data:1\ndata:2\n", b"data:3\n"]), Ok(()));
        assert_eq!(feed(&[b"data:1\ndata:2\n", b"data:3\ndata:4\n"]), too_long);
        assert_eq!(feed(&[b": 2345678\n", b": 2345678\n", b"data: 1\n"]), Ok(()));
    }
}
