//! A document: what a record becomes in a sink.

use std::sync::Arc;

/// One value of a document, as exact as the source has it.
#[derive(Debug, Clone)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A 64-bit integer, all of its digits.
    Integer(i64),
    /// A double, infinities and -0.0 included.
    Real(f64),
    /// Text; NUL characters are text too.
    Text(Box<str>),
    /// Bytes that a source calls text but that are not UTF-8.
    InvalidText(Box<[u8]>),
    /// Bytes.
    Blob(Box<[u8]>),
    /// JSON text exactly as the source has it: duplicate keys, order and number forms are kept.
    Json(Box<str>),
}

impl Value {
    /// The bytes this value holds, for bounding batches.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null => 1,
            Self::Integer(_) | Self::Real(_) => 8,
            Self::Text(text) | Self::Json(text) => text.len(),
            Self::InvalidText(bytes) | Self::Blob(bytes) => bytes.len(),
        }
    }
}

impl PartialEq for Value {
    /// Equal means the same bits: -0.0 and 0.0 differ, a NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Integer(a), Self::Integer(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) | (Self::Json(a), Self::Json(b)) => a == b,
            (Self::InvalidText(a), Self::InvalidText(b)) | (Self::Blob(a), Self::Blob(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

/// A record's document: named values in the order of the projection.
///
/// The names are shared by all documents of a projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    names: Arc<[Box<str>]>,
    values: Vec<Value>,
}

impl Document {
    /// Makes a document of as many values as names.
    ///
    /// # Panics
    /// If there are more or fewer values than names: a projection that does so is a bug of ours.
    pub fn new(names: Arc<[Box<str>]>, values: Vec<Value>) -> Self {
        assert_eq!(names.len(), values.len(), "a document has one value per name");
        Self { names, values }
    }

    /// The names, in the order of the projection.
    pub fn names(&self) -> &Arc<[Box<str>]> {
        &self.names
    }

    /// The values, in the order of the names.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Names with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names.iter().map(AsRef::as_ref).zip(&self.values)
    }

    /// The bytes of all values, for bounding batches and for `document_max`.
    pub fn bytes(&self) -> usize {
        self.values.iter().map(Value::bytes).sum()
    }
}
