//! Ids that a program reports itself.

use std::sync::Arc;

use tamis_sources::{PushError, PushSource, Pushed, SyncState};

use crate::checker::{id_set, integers, knows};

#[test]
fn only_the_token_changes_ids() {
    let ids = id_set(integers());
    ids.set_state(SyncState::Synced);
    assert!(matches!(PushSource::new(Arc::clone(&ids), ""), Err(PushError::NoToken)));
    let push = PushSource::new(Arc::clone(&ids), "secret").unwrap();
    for token in ["", "secre", "secret2", "Secret"] {
        assert_eq!(push.insert(token, ["1"]), Err(PushError::Token), "{token}");
        assert_eq!(push.delete(token, ["1"]), Err(PushError::Token), "{token}");
    }
    assert!(!knows(&ids, 1));
    let pushed = push.insert("secret", ["1", "007", "x", "0"]).unwrap();
    assert_eq!(pushed, Pushed { ids: 2, invalid: 2 });
    assert!(knows(&ids, 1) && knows(&ids, 7) && !knows(&ids, 2));
    assert!(!format!("{push:?}").contains("secret"));
}

#[test]
fn a_deletion_refuses_an_id() {
    let ids = id_set(integers());
    ids.set_state(SyncState::Synced);
    ids.insert(b"5").unwrap();
    let push = PushSource::new(Arc::clone(&ids), "secret").unwrap();
    assert_eq!(push.delete("secret", ["05"]), Ok(Pushed { ids: 1, invalid: 0 }));
    assert!(!knows(&ids, 5));
}
