//! Which server and tool a call goes to.

use std::sync::Arc;

use toolwarden_guard::{Feature, FeatureKind};
use toolwarden_live_guard::{Call, CallParams};
use toolwarden_mcp::ParamHeaders;
use toolwarden_model::{ExposedName, OwnName, ServerName};
use toolwarden_settings::PrefixMode;

use super::Gateway;
use crate::catalog::{
    ListError, NamingRules, OriginalName, ServerCatalog, ServerToolList, ServerView, ToolItem,
};
use crate::request_context::RequestContext;

/// Where a call goes.
pub(super) struct CallRoute {
    pub(super) catalog: Arc<ServerCatalog>,
    pub(super) view: ServerView,
    /// What the server calls the tool.
    pub(super) tool: OwnName,
    /// The tool in this agent's own list; `None` if the list does not have it.
    item: Option<Arc<ToolItem>>,
    /// Why this agent's own list does not serve it, whatever the guard decides by all lists.
    withheld: Option<ListError>,
}

impl CallRoute {
    fn new(
        catalog: Arc<ServerCatalog>,
        view: ServerView,
        list: &ServerToolList,
        named: OriginalName,
    ) -> Self {
        Self {
            catalog,
            view,
            item: list.tool(&named.name).cloned(),
            withheld: list.withheld_reason(&named),
            tool: named.name,
        }
    }

    pub(super) fn ensure_served(mut self) -> Result<Self, ListError> {
        match self.withheld.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// The arguments that must be repeated in headers, if there are any.
    pub(super) fn param_headers(&self) -> Option<&ParamHeaders> {
        let headers = &self.item.as_ref()?.headers;
        (!headers.is_empty()).then_some(headers)
    }
}

impl Gateway {
    /// Where a tool is, if no server need be asked for it.
    pub(super) fn known_route(
        &self,
        context: &RequestContext,
        name: &ExposedName,
    ) -> Option<CallRoute> {
        let named = self.named(name)?;
        let catalog = self.server_catalog(named.server.as_str())?;
        let view = catalog.known_call_view(context.client())?;
        let oldest = catalog.upstream.settings().watch.max_age_before_call;
        let list = catalog.fresh_tools(&view, oldest)?;
        let is_suspect = self.is_withheld_elsewhere(&view, name);
        (!is_suspect).then(|| CallRoute::new(catalog, view, &list, named))
    }

    /// Whether a tool is withheld by what the gateway itself saw, which may be as old as the agent's own list.
    fn is_withheld_elsewhere(&self, view: &ServerView, name: &ExposedName) -> bool {
        let directory = self.shared.directory.load();
        let variant = view.variant.as_deref();
        !view.scope.is_empty() && directory.withheld_from(name, variant).is_some()
    }

    /// The server of a tool; its list is refreshed if that is due.
    pub(super) async fn route_call(
        &self,
        context: &Arc<RequestContext>,
        call_params: &CallParams<'_>,
        call: &Call<'_>,
    ) -> Option<Result<CallRoute, ListError>> {
        let name = call_params.name();
        let named = match self.named(name) {
            Some(named) => named,
            None => {
                Box::pin(self.refresh_unknown_tool(context, name, call)).await;
                self.named(name)?
            }
        };
        let catalog = self.server_catalog(named.server.as_str())?;
        let looked = async {
            let view = catalog.call_view(context.client()).await?;
            let oldest = catalog.upstream.settings().watch.max_age_before_call;
            let mut list = self.checked_tools(&catalog, &view, oldest).await?;
            if self.is_withheld_elsewhere(&view, name) {
                self.refresh_tools(&catalog, oldest).await?;
                list = self.checked_tools(&catalog, &view, None).await?;
            }
            Ok((view, list))
        };
        let (view, list) = match looked.await {
            Ok(looked) => looked,
            Err(error) => return Some(Err(error)),
        };
        // The look may have changed what the name means.
        let now = self.named(name)?;
        if now.server != named.server {
            return None;
        }
        Some(Ok(CallRoute::new(catalog, view, &list, now)))
    }

    pub(crate) fn named(&self, name: &ExposedName) -> Option<OriginalName> {
        self.shared.directory.load().tools.find(name).cloned()
    }

    /// Looks for an agent at the servers that it has not seen yet, that may have a tool of this name, and that it may
    /// use: an agent need not have listed the tools before it calls one.
    async fn refresh_unknown_tool(
        &self,
        context: &Arc<RequestContext>,
        name: &ExposedName,
        call: &Call<'_>,
    ) {
        let settings = self.settings();
        let naming = NamingRules {
            mode: settings.prefix,
            separator: settings.separator.clone(),
        };
        let mut looks = Vec::new();
        for catalog in self.server_catalogs().iter() {
            let server = catalog.upstream.server_name();
            let cannot = naming.mode == PrefixMode::Always
                && !naming.has_server_prefix(name.as_str(), server);
            if cannot
                || catalog.has_active_list(context.client())
                || !self.may_call_unknown(&naming, name, server, call)
            {
                continue;
            }
            let (gateway, context) = (self.clone(), Arc::clone(context));
            let looked = Arc::clone(catalog);
            let look = async move { gateway.tool_list_for(&looked, &context).await };
            looks.push(catalog.with_list_timeout(look));
        }
        for look in looks {
            // What goes wrong shows in the health of the server.
            drop(look.await);
        }
    }

    /// Whether an agent may call a tool of a server that is not known yet: by the rules for the name that the tool
    /// would have at that server, else by the server's defaults.
    fn may_call_unknown(
        &self,
        naming: &NamingRules,
        name: &ExposedName,
        server: &ServerName,
        call: &Call<'_>,
    ) -> bool {
        let guard = &self.shared.guard;
        let other_name = match naming.own_name(name, server) {
            Some(own) => Arc::clone(own.as_arc()),
            None => naming.qualified_name(server, &OwnName::new(name.as_str())),
        };
        if guard.is_registered(&other_name) {
            let other = Call {
                tool: &other_name,
                ..call.clone()
            };
            return !self.is_denied_by_policy(&other);
        }
        // Rules may name features of some kinds, so that only the others show the defaults.
        let kinds = [
            FeatureKind::Method,
            FeatureKind::Prompt,
            FeatureKind::Resource,
            FeatureKind::Skill,
        ];
        kinds.into_iter().any(|kind| {
            let unnamed = Feature {
                kind,
                name: server.as_str(),
                server: Some(server.as_str()),
                ..Feature::default()
            };
            guard.may_see(&Call {
                feature: Some(unnamed),
                ..call.clone()
            })
        })
    }
}
