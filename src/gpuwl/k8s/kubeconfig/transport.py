"""Connections as a kubeconfig wants them: its authority, its certificate, its proxy."""

from typing import Any

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration

from gpuwl.k8s.kubeconfig.address import Address
from gpuwl.k8s.kubeconfig.credentials import Credentials

_CONNECTIONS = 8


def client(credentials: Credentials) -> ApiClient:
    """Return a client of the library on a transport of ours; it repeats and redirects nothing.

    The library's own transport wants paths of files, and takes proxies from the environment by
    other rules than kubectl.
    """
    configuration = Configuration(
        host=str(credentials.server), proxy="", no_proxy="", retries=False
    )
    made = ApiClient(configuration)
    made.rest_client.pool_manager = _pools(credentials)
    return made


def _pools(credentials: Credentials) -> urllib3.PoolManager:
    options: dict[str, Any] = {"maxsize": _CONNECTIONS, "retries": False}
    if credentials.tls:
        options["ssl_context"] = credentials.tls
    if credentials.server_name:
        options["server_hostname"] = credentials.server_name
    if credentials.insecure:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if credentials.proxy is None:
        return urllib3.PoolManager(**options)
    return _through(credentials.proxy, credentials, options)


def _through(
    proxy: Address, credentials: Credentials, options: dict[str, Any]
) -> urllib3.PoolManager:
    if proxy.scheme.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        name, password = proxy.login or (None, None)
        url = f"socks5h://{proxy.host}:{proxy.real_port}"  # it looks names up, as it does for Go
        return SOCKSProxyManager(url, username=name, password=password, **options)
    scheme = "https" if proxy.secure else "http"
    return urllib3.ProxyManager(
        f"{scheme}://{proxy.authority}",
        proxy_headers={"Proxy-Authorization": proxy.basic} if proxy.basic else None,
        proxy_ssl_context=credentials.tls,
        **options,
    )
