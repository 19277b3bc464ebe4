-- Version 4: one index of open leases, in their order, in place of three.
DROP INDEX open_lease_by_time;
DROP INDEX open_lease_by_key;
ALTER TABLE open_lease DROP CONSTRAINT open_lease_pkey;
ALTER TABLE open_lease ADD PRIMARY KEY (dataset, lease, key);
