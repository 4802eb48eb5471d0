//! Reader of JSON items anywhere in a reply.
//!
//! The reader scans from bracket to bracket and records items as soon as they end, so that a list that is
//! cut off still yields the items before the cut. An item is an object with an `id`, or the value of an id
//! in an object. Everything within an item is part of its answer and never an item, even if the item is
//! broken. The reader accepts prose and fences around JSON, trailing commas, line ends within strings, and
//! the Python literals `True`, `False` and `None`.

mod balance;
mod enclosing;
mod prose;
mod string;

use super::{ReplyContents, ReplyItem, ReplySpec, parse_id};
use enclosing::EnclosingFormats;
use prose::is_prose;
use serde_json::{Map, Number, Value};

/// Maximum nesting depth; no task needs more.
const MAX_DEPTH: usize = 32;

/// Maximum number of broken values to skip; a text with more is not JSON.
const MAX_BROKEN: usize = 200;

/// Maximum number of bytes searched for the ends of broken items. Each search may reach the end of the
/// text.
const MAX_SEARCHED_BYTES: usize = 1 << 25;

/// Reads all items of a text. `is_requested` tells whether JSON is the requested format.
pub(super) fn read(text: &str, is_requested: bool, spec: &ReplySpec<'_>) -> ReplyContents {
    let mut reader = JsonReader {
        text,
        at: 0,
        spec,
        is_within_item: false,
        is_lost: false,
        searched: 0,
        line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
        contents: ReplyContents::default(),
    };
    let enclosing = EnclosingFormats::new(text, spec);
    let (mut broken, mut is_damaged) = (0, false);
    while broken < MAX_BROKEN
        && reader.searched < MAX_SEARCHED_BYTES
        && let Some(open) = text[reader.at..].find(['{', '[']).map(|offset| reader.at + offset)
    {
        reader.at = open + 1;
        if !may_start(text, open, spec, (is_requested, is_damaged), &enclosing) {
            let is_trusted = is_requested && spec.is_nested() && !is_damaged;
            is_damaged |= !(is_trusted && reader.read_standalone(open));
            if reader.is_lost && spec.is_nested() {
                break;
            }
            continue;
        }
        reader.at = open;
        let earlier = std::mem::take(&mut reader.contents);
        let value = reader.value(0, key_before(text, open));
        let found = std::mem::replace(&mut reader.contents, earlier);
        match spec.is_nested() && is_inside_lost_value(&text[reader.at..], spec) {
            true => is_damaged = true,
            false => reader.contents.append(found),
        }
        if let Err(problem) = value {
            (broken, is_damaged) = (broken + 1, true);
            reader.contents.problem.get_or_insert(problem);
            reader.at = reader.at.max(open + 1);
            // The following objects may be within the broken item, and then they are not items.
            if reader.is_lost && spec.is_nested() {
                break;
            }
        }
    }
    reader.contents
}

/// Returns whether the value that opens here can be read on its own.
///
/// A value with a key is part of an object that could not be read, and an item only if the key is an id. If
/// answers can contain objects, such a value is probably part of an answer. Values are then rejected unless
/// they start a line, and also within an item of another format or in a list after damage.
fn may_start(
    text: &str,
    open: usize,
    spec: &ReplySpec<'_>,
    (is_requested, is_damaged): (bool, bool),
    enclosing: &EnclosingFormats,
) -> bool {
    let key = key_before(text, open);
    if !spec.is_nested() {
        return key.is_none_or(|key| spec.has_id(key));
    }
    let before = text[..open].trim_end();
    let starts_line = before.is_empty()
        || text[before.len()..open].contains('\n')
        || is_requested && is_prose(before, spec);
    let is_doubtful = is_damaged && before.ends_with([',', '[', '{']);
    starts_line && key.is_none() && !is_doubtful && !enclosing.enclose(before.len())
}

/// Returns whether the text after a value shows that it is part of a value whose beginning was lost.
fn is_inside_lost_value(after: &str, spec: &ReplySpec<'_>) -> bool {
    let after = after.trim_start();
    let tag = after.strip_prefix("</").and_then(|tag| tag.split_once('>'));
    let is_part = |name: &str| name == "item" || name == "value" || spec.is_field(name);
    after.starts_with([',', ']', '}']) || tag.is_some_and(|(name, _)| is_part(name.trim()))
}

/// Returns the quoted key before a value.
fn key_before(text: &str, open: usize) -> Option<&str> {
    let quoted = text[..open].trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    quoted.rfind('"').map(|start| &quoted[start + 1..])
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
    spec: &'t ReplySpec<'t>,
    /// Whether an enclosing object is an item or part of one.
    is_within_item: bool,
    /// Whether an item is broken and its end is unknown.
    is_lost: bool,
    /// Bytes searched for the ends of broken items.
    searched: usize,
    line_ends: Vec<usize>,
    contents: ReplyContents,
}

/// An object while it is read.
struct OpenObject<'k> {
    key: Option<&'k str>,
    fields: Map<String, Value>,
    /// Whether it has fields of an item, or is in a position of items.
    is_item: bool,
    /// Whether it has a list with the name of lists of items.
    has_items: bool,
}

impl JsonReader<'_> {
    /// Reads a value that starts in the middle of a line or after what looks like another format. Such values
    /// are accepted only if they are intact and cannot be part of a lost value. Used if answers can contain
    /// objects, JSON was requested, and nothing is damaged so far.
    ///
    /// Returns whether the value is accepted. An intact value that is not accepted is skipped.
    fn read_standalone(&mut self, open: usize) -> bool {
        if key_before(self.text, open).is_some() {
            return false;
        }
        let (at, earlier) = (self.at, std::mem::take(&mut self.contents));
        self.at = open;
        let value = self.value(0, None);
        let found = std::mem::replace(&mut self.contents, earlier);
        let Ok(value) = value else {
            self.at = at;
            return false;
        };
        let is_accepted = found.problem.is_none() && self.is_whole_reply(&value, open);
        if is_accepted {
            self.contents.append(found);
        }
        is_accepted
    }

    /// Returns whether a value is a whole reply: an object of items, not a single answer.
    fn is_whole_reply(&self, value: &Value, open: usize) -> bool {
        let is_part = |name: &String| name == "items" || name == "batch" || self.spec.has_id(name);
        let is_named = self.text[..open].trim_end().trim_end_matches(':').ends_with('"');
        value.as_object().is_some_and(|all| !all.is_empty() && all.keys().all(is_part)) && !is_named
    }

    fn value(&mut self, depth: usize, key: Option<&str>) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(self.problem("it is nested too deeply"));
        }
        self.skip_white_space();
        match self.peek() {
            Some(b'{') => self.object(depth, key, false),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'+' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.literal(),
            Some(_) => Err(self.problem("expected a value")),
            None => Err(self.unexpected_end()),
        }
    }

    /// Reads an object and records it. A broken item whose end is known becomes null.
    fn object(
        &mut self,
        depth: usize,
        key: Option<&str>,
        is_listed: bool,
    ) -> Result<Value, String> {
        let (start, items_before) = (self.at, self.contents.items.len());
        let has_id_key = key.is_some_and(|key| self.spec.has_id(key));
        let is_item = is_listed || has_id_key || key == Some("batch");
        let mut open = OpenObject { key, fields: Map::new(), is_item, has_items: false };
        let read = self.members(depth, &mut open);
        if self.is_within_item {
            return read.map(|()| Value::Object(open.fields));
        }
        let is_known = |id: String| self.spec.has_id(&id);
        let has_known_id =
            has_id_key || open.fields.get("id").and_then(parse_id).is_some_and(is_known);
        if open.has_items && !has_known_id && self.contents.items.len() > items_before {
            // An object around items may have an id that is not the id of an item.
            return read.map(|()| Value::Object(open.fields));
        }
        if open.is_item {
            // Inner objects were taken for items before this object turned out to be one.
            self.contents.items.truncate(items_before);
        }
        match read {
            Ok(()) => {
                self.record(&open);
                Ok(Value::Object(open.fields))
            }
            Err(problem) => {
                if open.is_item {
                    self.record_broken(&open, &problem);
                    let end = balance::balanced_length(&self.text[start..]);
                    self.searched += end.unwrap_or(self.text.len() - start);
                    if let Some(length) = end {
                        self.contents.problem.get_or_insert(problem);
                        self.at = self.at.max(start + length);
                        return Ok(Value::Null);
                    }
                    self.is_lost = true;
                }
                Err(problem)
            }
        }
    }

    fn members(&mut self, depth: usize, open: &mut OpenObject<'_>) -> Result<(), String> {
        self.at += 1;
        loop {
            self.skip_white_space();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'"') => {
                    let name = self.string()?;
                    if name.contains('\n') {
                        return Err(self.problem("a name goes over several lines"));
                    }
                    // Names within an answer are arbitrary and stay as they are.
                    let name = match self.is_within_item {
                        true => name,
                        false => self.spec.canonical_name(&name).to_owned(),
                    };
                    self.skip_white_space();
                    self.expect(b':')?;
                    open.is_item |= name == "id" || self.spec.is_field(&name);
                    let was_within_item = self.is_within_item;
                    // If answers contain no objects, the objects in such a list are items.
                    let is_list = name == "items" && !self.spec.is_nested();
                    open.has_items |= is_list;
                    self.is_within_item |= open.is_item && !is_list;
                    let value = self.value(depth + 1, Some(&name));
                    self.is_within_item = was_within_item;
                    if open.fields.insert(name.clone(), value?).is_some() {
                        return Err(self.problem(&format!("`{name}` comes twice")));
                    }
                    self.comma_or(b'}')?;
                }
                Some(_) => return Err(self.problem("expected a name in double quotes")),
                None => return Err(self.unexpected_end()),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_white_space();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                Some(b'{') if depth < MAX_DEPTH => {
                    items.push(self.object(depth + 1, None, true)?);
                }
                // A list within a list is part of an answer if answers can contain objects.
                Some(b'[') => {
                    let was_within_item = self.is_within_item;
                    self.is_within_item |= self.spec.is_nested();
                    let value = self.value(depth + 1, None);
                    self.is_within_item = was_within_item;
                    items.push(value?);
                }
                _ => items.push(self.value(depth + 1, None)?),
            }
            self.comma_or(b']')?;
        }
    }

    /// Records a complete object: an answer or the batch values.
    fn record(&mut self, open: &OpenObject<'_>) {
        let id = open.fields.get("id").and_then(parse_id);
        let key_id = open.key.filter(|key| self.spec.has_id(key));
        let fields = || Ok(open.fields.clone());
        let item = match (id, key_id) {
            (None, None) if open.key == Some("batch") => {
                self.contents.batch.get_or_insert_with(|| open.fields.clone());
                return;
            }
            (None, None) => {
                self.contents.nameless += usize::from(open.is_item);
                return;
            }
            // An object with another key may be a field of an answer whose id was lost.
            (Some(_), None) if open.key.is_some() && self.spec.is_nested() => return,
            (Some(id), None) => ReplyItem { id, fields: fields() },
            (None, Some(id)) => ReplyItem { id: id.to_owned(), fields: fields() },
            (Some(own), Some(id)) if own == id => ReplyItem { id: own, fields: fields() },
            (Some(own), Some(id)) => {
                let fields = Err(format!("it stands under `{id}` and has the id `{own}`"));
                ReplyItem { id: id.to_owned(), fields }
            }
        };
        self.contents.items.push(item);
    }

    /// Records an item that cannot be read.
    fn record_broken(&mut self, open: &OpenObject<'_>, problem: &str) {
        let id = open.fields.get("id").and_then(parse_id);
        let key_id = open.key.filter(|key| self.spec.has_id(key)).map(str::to_owned);
        for id in [id, key_id].into_iter().flatten() {
            self.contents.items.push(ReplyItem { id, fields: Err(problem.to_owned()) });
        }
    }

    /// Skips a comma, or stops before the closing bracket.
    fn comma_or(&mut self, close: u8) -> Result<(), String> {
        self.skip_white_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            Some(_) => Err(self.problem(&format!("expected a comma or `{}`", char::from(close)))),
            None => Err(self.unexpected_end()),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        match string::parse_string(&self.text[self.at..]) {
            Some((string, length)) => {
                self.at += length;
                Ok(string)
            }
            None => {
                self.at = self.text.len();
                Err(self.unexpected_end())
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_ascii_digit() || ['-', '+', '.', 'e', 'E'].contains(&c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let number = rest[..length].trim_start_matches('+').parse::<Number>();
        let number = number.map_err(|_| self.problem("not a number"))?;
        self.at += length;
        Ok(Value::Number(number))
    }

    fn literal(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let value = match &rest[..length] {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => return Err(self.problem("a text without quotes")),
        };
        self.at += length;
        Ok(value)
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.problem(&format!("expected `{}`", char::from(byte)))),
            None => Err(self.unexpected_end()),
        }
    }

    fn skip_white_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem(&self, what: &str) -> String {
        let line = self.line_ends.partition_point(|end| *end < self.at) + 1;
        format!("{what} (line {line} of the reply)")
    }

    fn unexpected_end(&self) -> String {
        "it ends in the middle".to_owned()
    }
}
