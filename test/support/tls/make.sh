#!/bin/sh
# Makes the certificates beside this file, with OpenSSL 3; the key of the authority is not kept.
# They are for tests alone: key.pem is public.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/authority.key"

cat >"$work/ca.cnf" <<CONFIG
[ca]
default_ca = tests
[tests]
database = $work/index
rand_serial = yes
new_certs_dir = $work
default_md = sha256
policy = policy
copy_extensions = copy
unique_subject = no
[policy]
commonName = supplied
CONFIG
: >"$work/index"

# certify <file> <extension> <from> <to> <arguments of openssl ca>…
certify() {
  file=$1 extension=$2 from=$3 to=$4 key=key.pem
  shift 4
  [ "$file" != authority ] || key=$work/authority.key
  openssl req -new -key "$key" -subj "/CN=$file" -addext "$extension" -out "$work/$file.csr"
  openssl ca -batch -notext -config "$work/ca.cnf" -startdate "$from" -enddate "$to" \
    -in "$work/$file.csr" -out "$file.pem" "$@"
}
names='subjectAltName=DNS:hook.test,DNS:mx.receiver.test,DNS:mta-sts.receiver.test,IP:127.0.0.1'
past=20200101000000Z future=21200101000000Z

certify authority 'basicConstraints=critical,CA:TRUE' $past $future -selfsign -keyfile "$work/authority.key"
certify valid "$names" $past $future -cert authority.pem -keyfile "$work/authority.key"
certify expired "$names" $past 20200201000000Z -cert authority.pem -keyfile "$work/authority.key"
certify other-name 'subjectAltName=DNS:other.test' $past $future -cert authority.pem -keyfile "$work/authority.key"
certify self-signed "$names" $past $future -selfsign -keyfile key.pem
