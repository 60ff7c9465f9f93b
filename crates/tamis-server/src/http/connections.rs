//! The open connections of the HTTP port. A fixed number of connections may request any path, and a
//! few additional connections may request only `/healthz`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::system::descriptors::{HEALTH_CONNECTIONS, MAX_HTTP_CONNECTIONS};

/// The open connections, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Connections {
    open: RefCell<BTreeMap<u64, Rc<Open>>>,
    next: Cell<u64>,
}

/// An open connection.
#[derive(Default)]
pub(crate) struct Open {
    number: u64,
    /// True while the server prepares the response to a complete request.
    pub is_answering: Cell<bool>,
    /// True if the connection arrived while all other connections waited for responses, so that the
    /// connection may request only `/healthz`.
    pub is_for_health: bool,
    end: Notify,
}

impl Connections {
    /// Admits a connection. If the number of connections has reached its limit, ends the oldest
    /// connection that waits for no response. If all connections wait for responses, the new
    /// connection may request only `/healthz`.
    pub fn admit(&self) -> Rc<Open> {
        let mut open = self.open.borrow_mut();
        let oldest = |is_for_health: bool| {
            let is_idle = |it: &Open| !it.is_answering.get() && it.is_for_health == is_for_health;
            open.values().find(|it| is_idle(it)).map(|it| it.number)
        };
        let for_health = open.values().filter(|it| it.is_for_health).count();
        let (mut is_for_health, mut ended) = (false, None);
        if open.len() - for_health >= MAX_HTTP_CONNECTIONS {
            ended = oldest(false);
            is_for_health = ended.is_none();
        }
        if is_for_health && for_health >= HEALTH_CONNECTIONS {
            // The server responds to `/healthz` immediately, so no connection for `/healthz` waits
            // for a response.
            ended = oldest(true);
        }
        if let Some(ended) = ended.and_then(|number| open.remove(&number)) {
            ended.end.notify_one();
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let added = Rc::new(Open { number, is_for_health, ..Open::default() });
        open.insert(number, added.clone());
        added
    }

    /// Runs an admitted connection until the connection ends, or until a newer connection replaces
    /// this connection.
    pub async fn run(&self, open: &Open, connection: impl Future<Output = ()>) {
        tokio::select! {
            () = connection => {}
            () = open.end.notified() => {}
        }
        self.open.borrow_mut().remove(&open.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Connections {
        pub fn len(&self) -> usize {
            self.open.borrow().len()
        }

        pub fn answering(&self) -> usize {
            self.open.borrow().values().filter(|it| it.is_answering.get()).count()
        }

        fn has(&self, open: &Open) -> bool {
            self.open.borrow().contains_key(&open.number)
        }
    }

    #[test]
    fn a_new_connection_replaces_the_oldest_idle_one() {
        let connections = Connections::default();
        let all: Vec<Rc<Open>> = (0..MAX_HTTP_CONNECTIONS).map(|_| connections.admit()).collect();
        all[0].is_answering.set(true);
        let new = connections.admit();
        assert!(!new.is_for_health && connections.len() == MAX_HTTP_CONNECTIONS);
        assert!(connections.has(&all[0]) && !connections.has(&all[1]));
    }

    #[test]
    fn while_all_wait_for_answers_new_connections_are_for_health() {
        let connections = Connections::default();
        for _ in 0..MAX_HTTP_CONNECTIONS {
            connections.admit().is_answering.set(true);
        }
        let first = connections.admit();
        for _ in 0..HEALTH_CONNECTIONS {
            assert!(connections.admit().is_for_health);
        }
        assert!(first.is_for_health && !connections.has(&first));
        assert_eq!(connections.len(), MAX_HTTP_CONNECTIONS + HEALTH_CONNECTIONS);
    }
}
