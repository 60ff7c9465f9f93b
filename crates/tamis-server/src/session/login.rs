//! The user of a connection.

use std::sync::Arc;

use tamis_commands::text;
use tamis_resp::Reply;

use crate::session::Session;
use crate::users::User;

impl Session {
    /// Authenticates the connection as `user`.
    pub fn authenticate(&mut self, user: Arc<User>) {
        self.client.properties.lock().user = Some(user.name.clone());
        self.is_authenticated = true;
        self.user = user;
    }

    /// Removes the authentication. If the default user needs no password, the connection continues
    /// as the default user.
    pub fn reset_user(&mut self) {
        let user = self.server.users.default_user();
        self.is_authenticated = false;
        self.client.properties.lock().user = None;
        if user.is_open() {
            self.authenticate(user);
        } else {
            self.user = user;
        }
    }

    /// Looks up the user again if users have changed. Returns an error if the user was removed.
    pub fn refresh_user(&mut self) -> Result<(), Reply> {
        let version = self.server.users.version();
        if version == self.users_version {
            return Ok(());
        }
        if !self.is_authenticated {
            self.users_version = version;
            self.reset_user();
            return Ok(());
        }
        let user = self.server.users.get(&self.user.name);
        match user.filter(|user| user.number == self.user.number && user.is_on) {
            Some(user) => {
                // Store the version of the user list from before the lookup. If users change during
                // the lookup, the next call looks up the user again.
                self.users_version = version;
                self.user = user;
                Ok(())
            }
            None => {
                // Keep the old version of the user list, so that every later command of a
                // transaction is refused too.
                self.is_closing = true;
                Err(Reply::error(text::acl::GONE))
            }
        }
    }

    /// Tests whether the user may still monitor the commands of other clients.
    pub fn may_monitor(&mut self) -> bool {
        self.refresh_user().is_ok() && self.is_authenticated && self.user.may_run("monitor")
    }
}
