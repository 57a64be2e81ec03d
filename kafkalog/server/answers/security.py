"""Answers about ACLs, users and quotas, from the cluster's metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from kafkalog.coordination.metadata import codes
from kafkalog.coordination.metadata.codes import number_of
from kafkalog.messages.schema import Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import RefusedRequestError, Request, Served

_UNKNOWN, _ANY, _MATCH = 0, 1, 2
_CODES = ("resourceTypeFilter", "patternTypeFilter", "operation", "permissionType")
# How a component of a filter matches the name of an entity; null is the default one's.
_EXACT, _DEFAULT = 0, 1
_LITERAL, _PREFIXED = "literal", "prefixed"
_WILDCARD = "*"
_RESOURCE = itemgetter("resourceType", "resourceName", "patternType")
_NOT_GIVEN = "The cluster's metadata is not among the given directories"


def describe_acls(served: Served, request: Request) -> Values:
    """Answer DescribeAcls: the ACLs that a filter matches, as brokers match them. Raises
    RefusedRequestError for a filter with the code of what is not known: brokers do not take it."""
    for name in _CODES:
        if request.values[name] == _UNKNOWN:
            raise RefusedRequestError(f"DescribeAcls with {name} {_UNKNOWN}, which means UNKNOWN")
    image = served.cluster.image
    if image is None:
        return {
            "errorCode": ErrorCode.SECURITY_DISABLED,
            "errorMessage": _NOT_GIVEN,
            "resources": [],
        }
    found = [
        {
            "resourceType": number_of(codes.ACL_RESOURCES, row["resource_type"]),
            "resourceName": row["resource_name"],
            "patternType": number_of(codes.PATTERNS, row["pattern_type"]),
            "principal": row["principal"],
            "host": row["host"],
            "operation": number_of(codes.OPERATIONS, row["operation"]),
            "permissionType": number_of(codes.PERMISSIONS, row["permission"]),
        }
        for row in image.rows("acl")
        if _names_resource(request.values, row)
    ]
    matching = sorted((each for each in found if _matches(request.values, each)), key=_RESOURCE)
    resources = [
        {
            **dict(zip(("resourceType", "resourceName", "patternType"), resource, strict=True)),
            "acls": [
                {name: each[name] for name in ("principal", "host", "operation", "permissionType")}
                for each in acls
            ],
        }
        for resource, acls in groupby(matching, key=_RESOURCE)
    ]
    return {"errorCode": ErrorCode.NONE, "errorMessage": "", "resources": resources}


def _matches(asked: Values, acl: Values) -> bool:
    """Return whether all of an ACL but the resource's name and pattern is as asked."""
    return (
        asked["resourceTypeFilter"] in (_ANY, acl["resourceType"])
        and asked["principalFilter"] in (None, acl["principal"])
        and asked["hostFilter"] in (None, acl["host"])
        and asked["operation"] in (_ANY, acl["operation"])
        and asked["permissionType"] in (_ANY, acl["permissionType"])
    )


def _names_resource(asked: Values, row: dict[str, Any]) -> bool:
    """Return whether a filter's name and pattern match those of an ACL. With the pattern `match`
    they do if the ACL is about a resource of that name."""
    name, pattern = asked["resourceNameFilter"], asked["patternTypeFilter"]
    own = number_of(codes.PATTERNS, row["pattern_type"])
    if pattern not in (_ANY, _MATCH, own):
        return False
    if name is None or name == row["resource_name"]:
        return True
    if pattern != _MATCH:
        return False
    if row["pattern_type"] == _PREFIXED:
        return str(name).startswith(row["resource_name"])
    return bool(row["pattern_type"] == _LITERAL and row["resource_name"] == _WILDCARD)


def describe_user_scram_credentials(served: Served, request: Request) -> Values:
    """Answer DescribeUserScramCredentials: which mechanisms users have, but no keys."""
    image = served.cluster.image
    of_user: dict[str, list[Values]] = {}
    for row in [] if image is None else image.rows("user"):
        info = {
            "mechanism": number_of(codes.SCRAM_MECHANISMS, row["mechanism"]),
            "iterations": row["iterations"],
        }
        of_user.setdefault(row["user"], []).append(info)
    asked = Counter(each["name"] for each in request.values["users"] or ())
    results = [_user(name, asked[name], of_user) for name in asked or sorted(of_user)]
    return {"errorCode": ErrorCode.NONE, "errorMessage": "", "results": results}


def _user(name: str, times: int, of_user: dict[str, list[Values]]) -> Values:
    error, message = ErrorCode.NONE, ""
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif name not in of_user:
        error = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {name}"
    infos = of_user[name] if error is ErrorCode.NONE else []
    return {
        "user": name,
        "errorCode": error,
        "errorMessage": message,
        "credentialInfos": sorted(infos, key=itemgetter("mechanism")),
    }


def describe_client_quotas(served: Served, request: Request) -> Values:
    """Answer DescribeClientQuotas: the quotas of the entities that a filter matches. As brokers do,
    refuse a filter that names a type of entity twice."""
    asked = request.values["components"]
    times = Counter(each["entityType"] for each in asked)
    twice = next((kind for kind, number in times.items() if number > 1), None)
    if twice is not None:
        message = f"Entity type {twice} cannot appear more than once in the filter."
        return {"errorCode": ErrorCode.INVALID_REQUEST, "errorMessage": message, "entries": None}
    image = served.cluster.image
    values: dict[tuple[tuple[str, str | None], ...], list[Values]] = {}
    for row in [] if image is None else image.rows("quota"):
        quota = {"key": row["quota"], "value": row["value"]}
        values.setdefault(row["entity"], []).append(quota)
    entries = [
        {
            "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
            "values": quotas,
        }
        for entity, quotas in values.items()
        if all(_is_of(dict(entity), component) for component in asked)
        and not (request.values["strict"] and len(entity) != len(asked))
    ]
    return {"errorCode": ErrorCode.NONE, "errorMessage": "", "entries": entries}


def _is_of(entity: Mapping[str, str | None], component: Values) -> bool:
    """Return whether an entity has the type of a component, and the name that it asks for."""
    kind = component["entityType"]
    if kind not in entity:
        return False
    if component["matchType"] == _EXACT:
        return entity[kind] is not None and entity[kind] == component["match"]
    return component["matchType"] != _DEFAULT or entity[kind] is None
