#!/bin/sh
# Makes sure that the tests find what they start: Java 17 or newer and Maven for
# a real Apache Kafka (its jars come from Maven Central, pinned in
# test/kafka/pom.xml), Chromium for the status page, promtool for the alert
# rules, bash, zsh and fish for the shell completion. PostgreSQL is found on the
# machine or downloaded by the tests themselves. As root on a Debian-like system
# what is missing is installed; elsewhere the command is printed.
set -eu

missing=""
java -version >/dev/null 2>&1 || missing="$missing openjdk-17-jre-headless"
mvn -version >/dev/null 2>&1 || missing="$missing maven"
chromium --version >/dev/null 2>&1 || missing="$missing chromium"
promtool --version >/dev/null 2>&1 || missing="$missing prometheus"
psql --version >/dev/null 2>&1 || missing="$missing postgresql-client"
for shell in bash zsh fish; do
	command -v $shell >/dev/null 2>&1 || missing="$missing $shell"
done
[ -n "$missing" ] || exit 0

install="apt-get update && apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing"
	DEBIAN_FRONTEND=noninteractive sh -c "$install" >/dev/null
else
	echo "missing:$missing; install it, on Debian and Ubuntu with: sudo sh -c '$install'" >&2
	exit 1
fi
