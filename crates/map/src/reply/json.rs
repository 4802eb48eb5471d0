//! Items in JSON, wherever they stand in a text.
//!
//! Values are looked for from bracket to bracket, and items are noted as soon as they end: so a list
//! that is cut in its middle still gives the items before the cut. An item is an object with an
//! `id`, or one that stands under an id; what lies within an item is part of its answer and never an
//! item itself, whether the item is whole or broken. Put up with: prose and fences around it, commas
//! before closing brackets, line ends within texts, and Python's words for true, false and none.

mod around;
mod balance;
mod text;
mod whole;

use super::{Contents, Expected, Said, id_of};
use around::Around;
use serde_json::{Map, Number, Value};
use whole::is_prose;

/// Deeper nesting is not what was asked for.
const MOST_DEPTH: usize = 32;

/// Broken values that are passed over; a text with more of them is not JSON.
const MOST_BROKEN: usize = 200;

/// How much is looked through for the ends of broken items, in bytes. Each of them may have to be
/// looked for up to the end of the text.
const MOST_SEARCHED: usize = 1 << 25;

/// Everything in a text; `is_asked` when JSON is what was asked for.
pub(super) fn read(text: &str, is_asked: bool, expected: &Expected<'_>) -> Contents {
    let mut reader = Reader {
        text,
        at: 0,
        expected,
        is_within: false,
        is_lost: false,
        searched: 0,
        line_ends: text.match_indices('\n').map(|(at, _)| at).collect(),
        contents: Contents::default(),
    };
    let around = Around::of(text, expected);
    let (mut broken, mut is_damaged) = (0, false);
    while broken < MOST_BROKEN
        && reader.searched < MOST_SEARCHED
        && let Some(open) = text[reader.at..].find(['{', '[']).map(|offset| reader.at + offset)
    {
        reader.at = open + 1;
        if !may_start(text, open, expected, (is_asked, is_damaged), &around) {
            let is_trusted = is_asked && expected.is_nested() && !is_damaged;
            is_damaged |= !(is_trusted && reader.take_whole(open));
            if reader.is_lost && expected.is_nested() {
                break;
            }
            continue;
        }
        reader.at = open;
        let before = std::mem::take(&mut reader.contents);
        let value = reader.value(0, key_before(text, open));
        let found = std::mem::replace(&mut reader.contents, before);
        match expected.is_nested() && is_followed(&text[reader.at..], expected) {
            true => is_damaged = true,
            false => reader.contents.add(found),
        }
        if let Err(problem) = value {
            (broken, is_damaged) = (broken + 1, true);
            reader.contents.problem.get_or_insert(problem);
            reader.at = reader.at.max(open + 1);
            // What comes now may be within it, and an object within an answer is no item.
            if reader.is_lost && expected.is_nested() {
                break;
            }
        }
    }
    reader.contents
}

/// Whether what opens here can be read by itself. What stands under a name is part of something that
/// cannot be read, and an item only if the name is an id. Where answers can hold objects, such things
/// are part of an answer more often than not, so nothing is believed that does not begin a line, that
/// lies within an item of another form, or that is in a list after damage.
fn may_start(
    text: &str,
    open: usize,
    expected: &Expected<'_>,
    (is_asked, is_damaged): (bool, bool),
    around: &Around,
) -> bool {
    let key = key_before(text, open);
    if !expected.is_nested() {
        return key.is_none_or(|key| expected.is_asked(key));
    }
    let before = text[..open].trim_end();
    let begins_line = before.is_empty()
        || text[before.len()..open].contains('\n')
        || is_asked && is_prose(before, expected);
    let is_doubtful = is_damaged && before.ends_with([',', '[', '{']);
    begins_line && key.is_none() && !is_doubtful && !around.is_another_form(before.len())
}

/// Whether what follows a value says that it lies in something that has lost its beginning.
fn is_followed(behind: &str, expected: &Expected<'_>) -> bool {
    let behind = behind.trim_start();
    let tag = behind.strip_prefix("</").and_then(|tag| tag.split_once('>'));
    let is_part = |name: &str| name == "item" || name == "value" || expected.is_field(name);
    behind.starts_with([',', ']', '}']) || tag.is_some_and(|(name, _)| is_part(name.trim()))
}

/// The name in quotes that stands before a value.
fn key_before(text: &str, open: usize) -> Option<&str> {
    let quoted = text[..open].trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    quoted.rfind('"').map(|start| &quoted[start + 1..])
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    expected: &'t Expected<'t>,
    /// An object around this place is an item, or belongs to one.
    is_within: bool,
    /// An item is broken, and nobody knows where it ends.
    is_lost: bool,
    /// How much was looked through for the ends of broken items.
    searched: usize,
    line_ends: Vec<usize>,
    contents: Contents,
}

/// An object that is being read.
struct Open<'k> {
    key: Option<&'k str>,
    fields: Map<String, Value>,
    /// It has what items have, or stands where only items stand.
    is_item: bool,
    /// It has a list that is called as lists of items are.
    has_items: bool,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize, key: Option<&str>) -> Result<Value, String> {
        if depth > MOST_DEPTH {
            return Err(self.problem("it is nested too deeply"));
        }
        self.white_space();
        match self.peek() {
            Some(b'{') => self.object(depth, key, false),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'+' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.word(),
            Some(_) => Err(self.problem("expected a value")),
            None => Err(self.ended()),
        }
    }

    /// An object, and what it says. One that is broken is nothing, if it can be seen where it ends.
    fn object(&mut self, depth: usize, key: Option<&str>, listed: bool) -> Result<Value, String> {
        let (start, mark) = (self.at, self.contents.items.len());
        let is_under_id = key.is_some_and(|key| self.expected.is_asked(key));
        let is_item = listed || is_under_id || key == Some("batch");
        let mut open = Open { key, fields: Map::new(), is_item, has_items: false };
        let read = self.members(depth, &mut open);
        if self.is_within {
            return read.map(|()| Value::Object(open.fields));
        }
        let is_asked = |id: String| self.expected.is_asked(&id);
        let is_own = is_under_id || open.fields.get("id").and_then(id_of).is_some_and(is_asked);
        if open.has_items && !is_own && self.contents.items.len() > mark {
            // What stands around items may have an id of its own, which is nobody's.
            return read.map(|()| Value::Object(open.fields));
        }
        if open.is_item {
            // What was taken for items before it was seen that this is one.
            self.contents.items.truncate(mark);
        }
        match read {
            Ok(()) => {
                self.note(&open);
                Ok(Value::Object(open.fields))
            }
            Err(problem) => {
                if open.is_item {
                    self.note_broken(&open, &problem);
                    let end = balance::length(&self.text[start..]);
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

    fn members(&mut self, depth: usize, open: &mut Open<'_>) -> Result<(), String> {
        self.at += 1;
        loop {
            self.white_space();
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
                    // Objects within an answer have names of the model's choice.
                    let name = match self.is_within {
                        true => name,
                        false => self.expected.meant(&name).to_owned(),
                    };
                    self.white_space();
                    self.expect(b':')?;
                    open.is_item |= name == "id" || self.expected.is_field(&name);
                    let around = self.is_within;
                    // Where answers hold no objects, none of those in such a list is part of one.
                    let is_list = name == "items" && !self.expected.is_nested();
                    open.has_items |= is_list;
                    self.is_within |= open.is_item && !is_list;
                    let value = self.value(depth + 1, Some(&name));
                    self.is_within = around;
                    if open.fields.insert(name.clone(), value?).is_some() {
                        return Err(self.problem(&format!("`{name}` comes twice")));
                    }
                    self.comma_or(b'}')?;
                }
                Some(_) => return Err(self.problem("expected a name in double quotes")),
                None => return Err(self.ended()),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.white_space();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                Some(b'{') if depth < MOST_DEPTH => {
                    items.push(self.object(depth + 1, None, true)?);
                }
                // A list within a list is part of an answer, where answers can hold such things.
                Some(b'[') => {
                    let around = self.is_within;
                    self.is_within |= self.expected.is_nested();
                    let value = self.value(depth + 1, None);
                    self.is_within = around;
                    items.push(value?);
                }
                _ => items.push(self.value(depth + 1, None)?),
            }
            self.comma_or(b']')?;
        }
    }

    /// What a whole object says: an answer, or something about all items.
    fn note(&mut self, open: &Open<'_>) {
        let own = open.fields.get("id").and_then(id_of);
        let under = open.key.filter(|key| self.expected.is_asked(key));
        let fields = || Ok(open.fields.clone());
        let said = match (own, under) {
            (None, None) if open.key == Some("batch") => {
                self.contents.batch.get_or_insert_with(|| open.fields.clone());
                return;
            }
            (None, None) => {
                self.contents.nameless += usize::from(open.is_item);
                return;
            }
            // What has a name may be a field of an answer whose id was lost, if such fields exist.
            (Some(_), None) if open.key.is_some() && self.expected.is_nested() => return,
            // Under a name that is no id, `id` is as good as anywhere.
            (Some(id), None) => Said { id, fields: fields() },
            (None, Some(id)) => Said { id: id.to_owned(), fields: fields() },
            (Some(own), Some(id)) if own == id => Said { id: own, fields: fields() },
            (Some(own), Some(id)) => {
                let fields = Err(format!("it stands under `{id}` and has the id `{own}`"));
                Said { id: id.to_owned(), fields }
            }
        };
        self.contents.items.push(said);
    }

    /// That an item is there and cannot be read.
    fn note_broken(&mut self, open: &Open<'_>, problem: &str) {
        let own = open.fields.get("id").and_then(id_of);
        let under = open.key.filter(|key| self.expected.is_asked(key)).map(str::to_owned);
        for id in [own, under].into_iter().flatten() {
            self.contents.items.push(Said { id, fields: Err(problem.to_owned()) });
        }
    }

    /// Passes a comma, or stays before what closes.
    fn comma_or(&mut self, close: u8) -> Result<(), String> {
        self.white_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            Some(_) => Err(self.problem(&format!("expected a comma or `{}`", char::from(close)))),
            None => Err(self.ended()),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        match text::string(&self.text[self.at..]) {
            Some((string, length)) => {
                self.at += length;
                Ok(string)
            }
            None => {
                self.at = self.text.len();
                Err(self.ended())
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

    fn word(&mut self) -> Result<Value, String> {
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
            None => Err(self.ended()),
        }
    }

    fn white_space(&mut self) {
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

    fn ended(&self) -> String {
        "it ends in the middle".to_owned()
    }
}
