//! Applies the changes of the stream, one transaction at a time.

use std::collections::HashSet;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::pgoutput::{Change, Old, Relation, Tuple, Value};
use crate::kinds::postgres::table::Table;
use crate::source::run::Run;

/// The maximum number of pending deletions in a transaction. If a transaction exceeds the maximum, a full read is
/// required.
const MAX_DELETED: usize = 1 << 20;

/// The effect of a change on the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// The transaction and everything before this position have ended.
    Committed(Lsn),
    /// The set contains ids that may not exist any more. A full read is required.
    NeedsRead,
    /// The stream has sent the definition of the table. The definition precedes the first change and follows each
    /// command that alters the table. After a command that alters the table, two rows may have the same id.
    Defined,
    /// The stream no longer contains the ids of the table.
    OtherTable,
}

/// The current transaction of the stream.
pub(super) struct Transaction<'r> {
    run: &'r Run,
    table: &'r Table,
    /// The index of the id column in the columns of the stream.
    column: Option<usize>,
    /// The indexes of the columns of the condition.
    tested: Vec<usize>,
    deleted: HashSet<Vec<u8>>,
}

/// The reason why a value of the stream cannot be used.
enum Unusable {
    /// A change arrived before the definition of its relation, or has other columns than the definition.
    Undefined,
    /// The log contains only the key of a deleted row, and the id is not part of the key. Or the log does not contain
    /// the long id of an updated row, and the source has a condition, which the update may have changed from true to
    /// false.
    NoIdentity,
}

impl<'r> Transaction<'r> {
    pub(super) fn new(run: &'r Run, table: &'r Table) -> Self {
        Self { run, table, column: None, tested: Vec::new(), deleted: HashSet::new() }
    }

    /// Applies a change. New ids pass immediately, because the stream contains only committed changes.
    pub(super) fn apply(&mut self, change: Change) -> Result<Effect, SourceError> {
        let table = self.table.ids.relation;
        let applied = match change {
            Change::Commit { end } => {
                for id in self.deleted.drain() {
                    self.run.delete_key(&id);
                }
                return Ok(Effect::Committed(end));
            }
            Change::Relation(relation) if relation.id == table => {
                return Ok(self.define(&relation));
            }
            Change::Truncate { relations } if relations.contains(&table) => {
                return Ok(Effect::NeedsRead);
            }
            Change::Insert { relation, new } if relation == table => {
                let new = if self.may_hold(&new) { self.value(&new) } else { Ok(Value::Null) };
                new.map(|new| (Value::Null, new))
            }
            Change::Update { relation, old, new } if relation == table => self.update(old, &new),
            Change::Delete { relation, old } if relation == table => {
                self.old_value(&old).map(|old| (old, Value::Null))
            }
            _ => return Ok(Effect::None),
        };
        match applied {
            Ok((old, new)) => self.replace(old, new),
            Err(Unusable::NoIdentity) => Ok(Effect::OtherTable),
            Err(Unusable::Undefined) => {
                let message = "the stream has a change of an unknown relation";
                Err(SourceError::Connect(message.to_owned()))
            }
        }
    }

    /// Finds the id column and the columns of the condition.
    fn define(&mut self, relation: &Relation) -> Effect {
        let column = (self.table.column.as_bytes(), self.table.column_type);
        let columns = relation.columns.iter();
        self.column = columns.map(|(name, kind)| (&**name, *kind)).position(|it| it == column);
        let condition = self.table.condition.as_ref();
        let tested = condition.map_or(Some(Vec::new()), |it| it.find(&relation.columns));
        match tested {
            Some(tested) if self.column.is_some() => {
                self.tested = tested;
                Effect::Defined
            }
            _ => Effect::OtherTable,
        }
    }

    /// Returns false if a row certainly does not satisfy the condition of the source.
    fn may_hold(&self, row: &Tuple) -> bool {
        self.table.condition.as_ref().is_none_or(|it| it.may_hold(&self.tested, row))
    }

    /// Returns the value of the id column.
    fn value(&self, tuple: &Tuple) -> Result<Value, Unusable> {
        let column = self.column.ok_or(Unusable::Undefined)?;
        tuple.get(column).cloned().ok_or(Unusable::Undefined)
    }

    fn old_value(&self, old: &Old) -> Result<Value, Unusable> {
        let value = self.value(&old.values)?;
        if old.is_key && value == Value::Null { Err(Unusable::NoIdentity) } else { Ok(value) }
    }

    /// Returns the values before and after an update. The first value is NULL if the id is unchanged and the row
    /// satisfies the condition. The second value is NULL if the row does not satisfy the condition. The second value is
    /// `Unchanged` only if the server has sent no old row. Servers before 14.2, 13.6 and 12.10 send no old row if a
    /// long id is unchanged.
    fn update(&self, old: Option<Old>, new: &Tuple) -> Result<(Value, Value), Unusable> {
        let may_hold = self.may_hold(new);
        let new = self.value(new)?;
        let old = old.map_or(Ok(Value::Null), |old| self.old_value(&old))?;
        let new = match new {
            Value::Unchanged if old != Value::Null => old.clone(),
            // The update may have changed the result of the condition.
            Value::Unchanged if self.table.condition.is_some() => return Err(Unusable::NoIdentity),
            new => new,
        };
        Ok(match may_hold {
            true if old == new => (Value::Null, new),
            true => (old, new),
            false if old == Value::Null => (new, Value::Null),
            false => (old, Value::Null),
        })
    }

    /// Replaces an id by another id. NULL is not an id.
    fn replace(&mut self, old: Value, new: Value) -> Result<Effect, SourceError> {
        let kind = self.table.ids.kind;
        if let Value::Text(old) = old
            && let Some(id) = self.run.canonical(kind.id_text(&old))
        {
            if self.table.is_unique {
                self.deleted.insert(id.into_owned());
            } else {
                self.run.delete_row_of_key(&id);
            }
        }
        match new {
            Value::Text(new) => {
                let Self { run, deleted, .. } = self;
                run.insert_live(kind.id_text(&new), |id| _ = deleted.remove(id))?;
            }
            // The row of any id may have become visible.
            Value::Unchanged => self.run.ids.forget_responses(),
            Value::Null => {}
        }
        if self.deleted.len() > MAX_DELETED {
            // The ids of the deleted rows pass until the next full read.
            self.deleted.clear();
            return Ok(Effect::NeedsRead);
        }
        Ok(Effect::None)
    }
}
