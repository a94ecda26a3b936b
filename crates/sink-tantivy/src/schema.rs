//! An index's schema: made from the configuration, and held against the one that is there.

use tantivy::schema::{
    DateOptions, DateTimePrecision, FacetOptions, Field, FieldEntry, FieldType, INDEXED,
    IndexRecordOption, JsonObjectOptions, NumericOptions, STORED, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions,
};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::analysis::Analysis;
use crate::spec::{FieldKind, FieldSpec, IndexSpec};

/// The key of a live record, as it is: its dictionary is the listing.
pub(crate) const KEY: &str = "_key";
/// The key of a record that was deleted: a tombstone has this and its rank, and nothing else.
pub(crate) const BURIED: &str = "_buried";
/// True in a tombstone and nowhere else: what a search leaves out.
pub(crate) const TOMBSTONE: &str = "_tombstone";
/// The rules number of the rank.
pub(crate) const RULES: &str = "_rules";
/// The version of the rank.
pub(crate) const VERSION: &str = "_version";
/// The digest of the document that the record was made of.
pub(crate) const DIGEST: &str = "_digest";

/// The tokenizer that leaves text as it is.
const RAW: &str = "raw";

/// An index's schema with the places of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub schema: Schema,
    pub key: Field,
    pub buried: Field,
    pub tombstone: Field,
    pub rules: Field,
    pub version: Field,
    pub digest: Field,
    /// The configured fields in their order.
    pub fields: Vec<(FieldSpec, Field)>,
}

impl Layout {
    /// The schema that a configuration wants.
    pub(crate) fn wanted(spec: &IndexSpec) -> Self {
        let mut builder = SchemaBuilder::default();
        let exact = || exact(IndexRecordOption::Basic);
        let number = || NumericOptions::default().set_fast();
        let key = builder.add_text_field(KEY, exact().set_stored());
        let buried = builder.add_text_field(BURIED, exact());
        let tombstone = builder.add_bool_field(TOMBSTONE, INDEXED);
        let rules = builder.add_u64_field(RULES, number());
        let version = builder.add_u64_field(VERSION, number());
        let digest = builder.add_bytes_field(DIGEST, STORED);
        let mut add = |field: &FieldSpec| builder.add_field(entry(field));
        let fields = spec.fields.iter().map(|field| (field.clone(), add(field))).collect();
        Self { schema: builder.build(), key, buried, tombstone, rules, version, digest, fields }
    }

    /// This layout over the schema of an index that is there.
    ///
    /// # Errors
    /// Class Halted with `INDEX_MISMATCH`, naming every field that differs.
    pub(crate) fn over(&self, found: &Schema) -> Result<Self, PortError> {
        let differences = self.differences(found);
        if !differences.is_empty() {
            let error = PortError::new("use an index", FailureClass::Halted, Code::INDEX_MISMATCH);
            return Err(error.detail(differences.join("; ")));
        }
        let place = |name: &str| found.get_field(name).expect("the fields are equal");
        Ok(Self {
            schema: found.clone(),
            key: place(KEY),
            buried: place(BURIED),
            tombstone: place(TOMBSTONE),
            rules: place(RULES),
            version: place(VERSION),
            digest: place(DIGEST),
            fields: self.fields.iter().map(|(spec, _)| (spec.clone(), place(&spec.name))).collect(),
        })
    }

    fn differences(&self, found: &Schema) -> Vec<String> {
        let mut differences = Vec::new();
        for (_, wanted) in self.schema.fields() {
            let name = wanted.name();
            match found.get_field(name).map(|field| found.get_field_entry(field)) {
                Err(_) => differences.push(format!("it lacks field `{name}` ({})", told(wanted))),
                Ok(found) if found != wanted => {
                    let (is, not) = (told(found), told(wanted));
                    differences.push(format!("field `{name}` is {is}, not {not}"));
                }
                Ok(_) => {}
            }
        }
        for (_, entry) in found.fields() {
            if self.schema.get_field(entry.name()).is_err() {
                let (name, is) = (entry.name(), told(entry));
                differences.push(format!("it has field `{name}` ({is}) too many"));
            }
        }
        differences
    }
}

fn exact(option: IndexRecordOption) -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer(RAW).set_fieldnorms(false);
    TextOptions::default().set_indexing_options(indexing.set_index_option(option))
}

/// Words with their places, so that phrases can be searched.
fn words(analysis: Analysis) -> TextFieldIndexing {
    let option = IndexRecordOption::WithFreqsAndPositions;
    TextFieldIndexing::default().set_tokenizer(&analysis.name()).set_index_option(option)
}

fn entry(field: &FieldSpec) -> FieldEntry {
    let name = field.name.clone();
    match field.kind {
        FieldKind::Text(analysis) => FieldEntry::new_text(name, text(field, words(analysis))),
        FieldKind::Keyword => {
            let indexing = exact(IndexRecordOption::Basic);
            let indexing = indexing.get_indexing_options().cloned().unwrap_or_default();
            FieldEntry::new_text(name, text(field, indexing))
        }
        FieldKind::Facet => {
            let options = FacetOptions::default();
            let options = if field.stored { options.set_stored() } else { options };
            FieldEntry::new_facet(name, options)
        }
        FieldKind::Date(_) => {
            let mut options = DateOptions::default().set_precision(DateTimePrecision::Microseconds);
            if field.indexed {
                options = options.set_indexed();
            }
            if field.stored {
                options = options.set_stored();
            }
            if field.fast {
                options = options.set_fast();
            }
            FieldEntry::new_date(name, options)
        }
        FieldKind::Signed => FieldEntry::new_i64(name, numeric(field)),
        FieldKind::Unsigned => FieldEntry::new_u64(name, numeric(field)),
        FieldKind::Real => FieldEntry::new_f64(name, numeric(field)),
        FieldKind::Boolean => FieldEntry::new_bool(name, numeric(field)),
        FieldKind::Json(analysis) => {
            let mut options = JsonObjectOptions::default();
            if field.indexed {
                options = options.set_indexing_options(words(analysis));
            }
            if field.stored {
                options = options.set_stored();
            }
            if field.fast {
                options = options.set_fast(RAW);
            }
            FieldEntry::new_json(name, options)
        }
    }
}

fn text(field: &FieldSpec, indexing: TextFieldIndexing) -> TextOptions {
    let mut options = TextOptions::default();
    if field.indexed {
        options = options.set_indexing_options(indexing);
    }
    if field.stored {
        options = options.set_stored();
    }
    if field.fast {
        options = options.set_fast(RAW);
    }
    options
}

fn numeric(field: &FieldSpec) -> NumericOptions {
    let mut options = NumericOptions::default();
    if field.indexed {
        options = options | INDEXED;
    }
    if field.stored {
        options = options.set_stored();
    }
    if field.fast {
        options = options.set_fast();
    }
    options
}

/// A field as a person would say it.
fn told(entry: &FieldEntry) -> String {
    let mut words = vec![match entry.field_type() {
        FieldType::Str(options) => match options.get_indexing_options() {
            Some(indexing) if indexing.tokenizer() == RAW => "keyword".to_owned(),
            Some(indexing) => format!("text by `{}`", indexing.tokenizer()),
            None => "text".to_owned(),
        },
        FieldType::JsonObject(options) => match options.get_text_indexing_options() {
            Some(indexing) => format!("json by `{}`", indexing.tokenizer()),
            None => "json".to_owned(),
        },
        other => format!("{:?}", other.value_type()).to_lowercase(),
    }];
    if !entry.is_indexed() {
        words.push("not indexed".to_owned());
    }
    words.push(if entry.is_stored() { "stored" } else { "not stored" }.to_owned());
    if entry.is_fast() {
        words.push("fast".to_owned());
    }
    words.join(", ")
}

#[cfg(test)]
mod tests;
